-- Puts a book that was made from a host's report in place of the one it was made from. ARGV: term; the count field of
-- that one, or nothing where there was none; the life of the store it was made in; the new count of operations; then
-- the fields of the new book with their texts.
if ARGV[3] ~= RUN then return {'changed'} end
local b = redis.call('HMGET', KEYS[1], 'gate', 'count')
local term = b[1] and string.match(b[1], '^(%d+)|')
if term and tonumber(ARGV[1]) < tonumber(term) then return {'term', term} end
if (b[2] or '') ~= ARGV[2] then return {'changed'} end
redis.call('DEL', KEYS[1])
for i = 5, #ARGV, 1000 do redis.call('HSET', KEYS[1], unpack(ARGV, i, math.min(i + 999, #ARGV))) end
return {'ok', ARGV[4]}
