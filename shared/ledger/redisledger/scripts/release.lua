-- Ends a reservation, live or in limbo; once. ARGV 5: attempt.
local no = open()
if no then return no end
local entry = redis.call('HGET', ENTRIES, ARGV[5])
if not entry then return {'ok', commit(), '0'} end
remove(ARGV[5], parse(entry))
return {'ok', commit(), '1'}
