-- Takes an idle asset out of all pools. ARGV 5: its name with an @ behind it.
local no = open()
if no then return no end
local found = {}
for _, key in ipairs(redis.call('HKEYS', ASSETS)) do
  if string.sub(key, 1, #ARGV[5]) == ARGV[5] then found[#found + 1] = key end
end
table.sort(found)
for _, key in ipairs(found) do
  if assetOf(key).users > 0 then return {'users', text(assetOf(key).users)} end
end
for _, key in ipairs(found) do
  use(string.match(key, '@(.+)$'), -assetOf(key).bytes)
  touch(key, false)
  assets = assets - 1
end
return {'ok', commit(), #found > 0 and '1' or '0'}
