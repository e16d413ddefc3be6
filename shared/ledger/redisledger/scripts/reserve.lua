-- Books an attempt's whole path, in all pools or not at all.
local no = open()
if no then return no end
local entry = redis.call('HGET', ENTRIES, ATTEMPT)
if entry then return again(entry) end
return grant(nil, nil, 10)
