-- Raises the term: of the whole ledger where ARGV 2 is 'ledger' and the key its own hash, else of a book that exists.
-- ARGV 1: term.
local gate = redis.call('HGET', KEYS[1], 'gate')
local term, rest = string.match(gate or '', '^(%d+)(|.*)$')
if term and tonumber(ARGV[1]) < tonumber(term) then return {'term', term} end
if ARGV[2] == 'ledger' or term then
  redis.call('HSET', KEYS[1], 'gate', table.concat({ARGV[1], rest or '||'}))
end
return {'ok', '0'}
