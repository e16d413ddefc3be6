-- Drops the book of a node that is gone for good.
local gate = redis.call('HGET', BOOK, 'gate')
local term = gate and string.match(gate, '^(%d+)|')
if term and tonumber(ARGV[1]) < tonumber(term) then return {'term', term} end
local booked = redis.call('HLEN', ENTRIES)
if booked > 0 then return {'booked', text(booked)} end
redis.call('DEL', BOOK, ENTRIES, LEASES, ASSETS)
return {'ok', '0'}
