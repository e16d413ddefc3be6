-- Raises the term: of the whole ledger where ARGV 5 is 'ledger' and BOOK its own hash, else of a book that exists.
local term = redis.call('HGET', BOOK, 'term')
if term and tonumber(ARGV[1]) < tonumber(term) then return {'term', term} end
if ARGV[5] == 'ledger' or term then redis.call('HSET', BOOK, 'term', ARGV[1]) end
return {'ok', '0'}
