-- Puts a book that was made from a host's report in place of the one it was made from. ARGV 5: the count field of that
-- one, or nothing where there was none; 6: the life of the store it was made in; 7: the new count of operations. Then,
-- each with its length in front: book, entries, leases (end, attempt), assets.
if ARGV[6] ~= RUN then return {'changed'} end
local b = redis.call('HMGET', BOOK, 'gate', 'count')
local term = b[1] and string.match(b[1], '^(%d+)|')
if term and tonumber(ARGV[1]) < tonumber(term) then return {'term', term} end
if (b[2] or '') ~= ARGV[5] then return {'changed'} end
redis.call('DEL', BOOK, ENTRIES, LEASES, ASSETS)
local at = 8
for _, how in ipairs({{'HSET', BOOK}, {'HSET', ENTRIES}, {'ZADD', LEASES}, {'HSET', ASSETS}}) do
  local stop = at + tonumber(ARGV[at])
  for i = at + 1, stop, 2 do
    redis.call(how[1], how[2], ARGV[i], ARGV[i + 1])
  end
  at = stop + 1
end
return {'ok', ARGV[7]}
