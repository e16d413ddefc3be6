-- Books an attempt's whole path, in all pools or not at all.
local no = open()
if no then return no end
local names = call('HKEYS', ENTRIES)
for _, name in ipairs(names) do
  if name == ATTEMPT then return again(call('HGET', ENTRIES, name)) end
end
return grant(nil, nil, 10, names)
