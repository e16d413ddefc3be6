-- Drops the book of a node that is gone for good. ARGV 1: term.
local b = redis.call('HMGET', KEYS[1], 'gate', 'count')
local term = b[1] and string.match(b[1], '^(%d+)|')
if term and tonumber(ARGV[1]) < tonumber(term) then return {'term', term} end
local entries = b[2] and string.match(b[2], '^%d+|%d+|(%d+)|')
if entries and tonumber(entries) > 0 then return {'booked', entries} end
redis.call('DEL', KEYS[1])
return {'ok', '0'}
