-- What reserve and transfer share. Fields: the partition's first; cap:, used: and a:segments@ of each pool; those of
-- the assets. Own: fence, amounts, assets' names, entries at most, assets at most, how many pools; of each pool its
-- name and the bytes asked for; of each asset its field, pool, class and bytes.
local FIELD, FENCE, AMOUNTS, NAMES = ARGV[5], ARGV[OWN], ARGV[OWN + 1], ARGV[OWN + 2]
local POOLS, ASSETS = OWN + 6, OWN + 6 + 2 * tonumber(ARGV[OWN + 5])

local list, twin, giver, fenced = {}, nil, nil, false -- entries of the partition, this attempt's and from's among them
for entry in gmatch(have[FIELD] or '', '[^;]+') do
  local e = {match(entry, ENTRY)}
  list[#list + 1] = e
  if e[1] == FENCE then twin = e end
  if FIELD == FROM and e[1] == ARGV[#ARGV] then giver = e end
  if tonumber(e[1]) > tonumber(FENCE) then fenced = true end
end

if twin then -- it is renewed when it is what is asked for
  if twin[2] ~= 'L' then return {'limbo'} end
  if twin[5] ~= AMOUNTS or twin[6] ~= NAMES then return {'other'} end
  if source then return {'both'} end
  twin[4] = text(now + LEASE)
else
  if FROM and not source then return {'missing'} end
  if source and source[2] ~= 'L' then return {'giver'} end
  if fenced then return {'fenced'} end
  local wanted = (LAST - ASSETS + 1) / 4
  if entries >= tonumber(ARGV[OWN + 3]) and not source or assets + wanted > tonumber(ARGV[OWN + 4]) then
    return {'full'}
  end

  local give, users = {}, {} -- of from: bytes by pool, uses by asset's field
  if source then
    for pool, n in gmatch(source[5], '([^=,]+)=(%d+)') do give[pool] = tonumber(n) end
    for key in gmatch(source[6], '[^,]+') do users[join({'a:', key})] = -1 end
  end
  local need, time = {}, text(now)
  for i = POOLS, ASSETS - 1, 2 do need[ARGV[i]] = tonumber(ARGV[i + 1]) end
  for i = ASSETS, LAST, 4 do
    local field, pool, class, bytes = ARGV[i], ARGV[i + 1], ARGV[i + 2], tonumber(ARGV[i + 3])
    local size, count = 0, 0
    if have[field] then
      class, size, count = match(have[field], ASSET)
      size, count = tonumber(size), tonumber(count)
    else
      assets = assets + 1
    end
    if bytes > size then need[pool], size = need[pool] + bytes - size, bytes end
    set[#set + 1] = field
    set[#set + 1] = join({class, text(size), text(count + 1 + (users[field] or 0)), time}, '|')
    users[field] = nil
  end
  for i = POOLS, ASSETS - 1, 2 do
    local pool = ARGV[i]
    local n, used = need[pool], tonumber(have['used:' .. pool] or '0') - (give[pool] or 0)
    give[pool] = nil
    local free = tonumber(have['cap:' .. pool] or '0') - used
    if n > free and n > 0 then -- free segments give way
      local class, spare, count, at = match(have['a:segments@' .. pool] or 'x|0|0|0', ASSET)
      local left = tonumber(spare) - (n - free)
      if left < 0 then return {'refused', dump(CLOCK)} end
      if left == 0 then
        gone[#gone + 1] = 'a:segments@' .. pool
        assets = assets - 1
      else
        set[#set + 1], set[#set + 2] = 'a:segments@' .. pool, join({class, text(left), count, at}, '|')
      end
      used = free + used - n
    end
    set[#set + 1], set[#set + 2] = 'used:' .. pool, text(used + n)
  end
  for pool, n in pairs(give) do
    set[#set + 1], set[#set + 2] = 'used:' .. pool, text(tonumber(have['used:' .. pool] or '0') - n)
  end
  for field, by in pairs(users) do
    if have[field] then
      local class, size, count = match(have[field], ASSET)
      set[#set + 1], set[#set + 2] = field, join({class, size, text(tonumber(count) + by), time}, '|')
    end
  end
  for _, e in ipairs(list) do
    if e[2] == 'L' then e[2], e[4] = 'X', time end
  end
  list[#list + 1] = {FENCE, 'L', time, text(now + LEASE), AMOUNTS, NAMES}
  if not source then entries = entries + 1 end
end

local texts = {}
for _, e in ipairs(list) do
  if e ~= giver then texts[#texts + 1] = join(e, '|') end
end
set[#set + 1], set[#set + 2] = FIELD, join(texts, ';')
if source and FROM ~= FIELD then
  local others = {}
  for entry in gmatch(have[FROM], '[^;]+') do
    if match(entry, '^%d+') ~= source[1] then others[#others + 1] = entry end
  end
  if #others == 0 then
    gone[#gone + 1] = FROM
  else
    set[#set + 1], set[#set + 2] = FROM, join(others, ';')
  end
end
