-- Takes an idle asset out of all pools. ARGV 5: its name with an @ behind it.
local no = open()
if no then return no end
local found = {}
for _, key in ipairs(redis.call('HKEYS', ASSETS)) do
  if string.find(key, ARGV[5], 1, true) == 1 then found[#found + 1] = key end
end
table.sort(found)
load(found)
for _, key in ipairs(found) do
  if asset[key].users > 0 then return {'users', text(asset[key].users)} end
end
for _, key in ipairs(found) do
  use(string.match(key, '@(.+)$'), -asset[key].bytes)
  asset[key].gone = true
end
return {'ok', commit(), #found > 0 and '1' or '0'}
