-- Begins new leases. Own: of each attempt its name, its partition's field and its fence. Gives those that have none.
result = {}
for first = OWN, #ARGV, 1500 do -- so many at once as a call may take
  local names = {}
  for i = first, math.min(first + 1499, #ARGV), 3 do names[#names + 1] = ARGV[i + 1] end
  for i, entry in ipairs(call('HMGET', BOOK, unpack(names))) do
    if have[names[i]] == nil then have[names[i]] = entry end
  end
end
local changed = {}
for i = OWN, #ARGV, 3 do
  local field, list, found = ARGV[i + 1], {}, false
  for entry in gmatch(have[field] or '', '[^;]+') do
    local e = {match(entry, ENTRY)}
    if e[1] == ARGV[i + 2] and e[2] == 'L' then
      e[4], found = text(now + LEASE), true
    end
    list[#list + 1] = join(e, '|')
  end
  if found then
    have[field], changed[field] = join(list, ';'), true
  else
    result[#result + 1] = ARGV[i]
  end
end
for field in pairs(changed) do set[#set + 1], set[#set + 2] = field, have[field] end
