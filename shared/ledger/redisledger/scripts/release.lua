-- Ends a reservation, live or in limbo; once. Fields: the partition's. Own: fence.
local field, others, amounts, keys = ARGV[5], {}, nil, nil
for entry in gmatch(have[field] or '', '[^;]+') do
  local fence, _, _, _, a, k = match(entry, ENTRY)
  if fence == ARGV[OWN] then
    amounts, keys = a, k
  else
    others[#others + 1] = entry
  end
end
result = '0'
if amounts then
  result, entries = '1', entries - 1
  gone[1] = field -- also where others stay: what takes out first may write where the store has no memory left
  if #others > 0 then set = {field, join(others, ';')} end
  local names, bytes = {}, {}
  for pool, n in gmatch(amounts, '([^=,]+)=(%d+)') do
    names[#names + 1], bytes[#bytes + 1] = 'used:' .. pool, tonumber(n)
  end
  for key in gmatch(keys, '[^,]+') do names[#names + 1] = join({'a:', key}) end
  local stored = #names > 0 and call('HMGET', BOOK, unpack(names)) or {}
  for i, name in ipairs(names) do
    local to
    if bytes[i] then
      to = text(tonumber(stored[i] or '0') - bytes[i])
    elseif stored[i] then
      local class, size, users = match(stored[i], ASSET)
      to = join({class, size, text(tonumber(users) - 1), text(now)}, '|')
    end
    if to then set[#set + 1], set[#set + 2] = name, to end
  end
end
