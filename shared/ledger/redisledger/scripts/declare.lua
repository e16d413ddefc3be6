-- Puts a book that was made from a host's report in place of the one it was made from. ARGV 5: the count of operations
-- of that one, or nothing where there was none; 6: the life of the store it was made in. Then, each with its length in
-- front: book, entries, leases (end, attempt), assets.
if ARGV[6] ~= RUN then return {'changed'} end
local b = redis.call('HMGET', BOOK, 'term', 'ops')
if b[1] and tonumber(ARGV[1]) < tonumber(b[1]) then return {'term', b[1]} end
if (b[2] or '') ~= ARGV[5] then return {'changed'} end
redis.call('DEL', BOOK, ENTRIES, LEASES, ASSETS)
local at = 7
for _, how in ipairs({{'HSET', BOOK}, {'HSET', ENTRIES}, {'ZADD', LEASES}, {'HSET', ASSETS}}) do
  local stop = at + tonumber(ARGV[at])
  for i = at + 1, stop, 2 do
    redis.call(how[1], how[2], ARGV[i], ARGV[i + 1])
  end
  at = stop + 1
end
return {'ok', redis.call('HGET', BOOK, 'ops')}
