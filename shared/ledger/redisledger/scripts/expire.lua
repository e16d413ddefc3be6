-- Puts attempts whose lease is over into limbo, and gives all that are there.
result = {}
local all = call('HGETALL', BOOK)
for i = 1, #all, 2 do
  local partition = match(all[i], '^e:(.*)$')
  if partition then
    local list, changed = {}, false
    for entry in gmatch(all[i + 1], '[^;]+') do
      local e = {match(entry, ENTRY)}
      if e[2] == 'L' and math.max(tonumber(e[4]), tonumber(rearmed)) <= now then
        e[2], e[4], changed = 'X', text(now), true
      end
      if e[2] == 'X' then result[#result + 1] = join({partition, e[1]}) end
      list[#list + 1] = join(e, '|')
    end
    if changed then set[#set + 1], set[#set + 2] = all[i], join(list, ';') end
  end
end
gone[1] = '-' -- a script that began to write may go on where the store has no memory left
