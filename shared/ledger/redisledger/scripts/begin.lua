-- Raises the term: of the whole ledger where ARGV 5 is 'ledger' and BOOK its own hash, else of a book that exists.
local gate = redis.call('HGET', BOOK, 'gate')
local term, rest = string.match(gate or '', '^(%d+)(|.*)$')
if term and tonumber(ARGV[1]) < tonumber(term) then return {'term', term} end
if ARGV[5] == 'ledger' or term then
  redis.call('HSET', BOOK, 'gate', table.concat({ARGV[1], rest or '||'}))
end
return {'ok', '0'}
