-- Releases one attempt and books another one in one step; grant.lua does it. The second field is that of the giving
-- attempt's partition, the last own one its fence.
local FROM, source, LAST = ARGV[6], nil, #ARGV - 1
for entry in gmatch(have[FROM] or '', '[^;]+') do
  if match(entry, '^%d+') == ARGV[#ARGV] then source = {match(entry, ENTRY)} end
end
if source then -- what it gives is read, too
  local names = {}
  for pool in gmatch(source[5], '([^=,]+)=') do names[#names + 1] = 'used:' .. pool end
  for key in gmatch(source[6], '[^,]+') do names[#names + 1] = join({'a:', key}) end
  local stored = #names > 0 and call('HMGET', BOOK, unpack(names)) or {}
  for i, name in ipairs(names) do have[name] = stored[i] end
end
