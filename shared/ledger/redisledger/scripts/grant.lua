-- What reserve and transfer share. ARGV from 5: attempt, its text up to the fence, fence, amounts, assets' names; then
-- from the place given: entries at most, assets at most, and for each asset its name, class and bytes.
local ATTEMPT, PARTITION, AMOUNTS, NAMES = ARGV[5], ARGV[6], ARGV[8], ARGV[9]

-- again renews the reservation when it is what is asked for, else says how it differs.
local function again(entry)
  local e = parse(entry)
  if e.state ~= 'L' then return {'limbo', ATTEMPT} end
  if e.amounts ~= AMOUNTS or e.keys ~= NAMES then return {'other'} end
  call('ZADD', LEASES, text(now + LEASE), ATTEMPT)
  return {'ok', commit()}
end

-- grant books the attempt, in place of from's entry when there is one. names are those of all entries.
local function grant(from, source, at, names)
  local older = {}
  if #names ~= entries or call('ZCARD', LEASES) ~= live or call('HLEN', ASSETS) ~= assets then
    return {'closed', 'damaged'}
  end
  for _, name in ipairs(names) do
    if string.find(name, PARTITION, 1, true) == 1 then
      if tonumber(string.sub(name, #PARTITION + 1)) > tonumber(ARGV[7]) then return {'fenced'} end
      if name ~= from and call('ZSCORE', LEASES, name) then older[#older + 1] = name end
    end
  end
  local wanted = (#ARGV - at - 1) / 3
  if entries >= tonumber(ARGV[at]) and not from or assets + wanted > tonumber(ARGV[at + 1]) then return {'full'} end

  local need, given, keys = {}, {}, {}
  each(AMOUNTS, function(pool, n) need[pool] = n end)
  if source then each(source.amounts, function(pool, n) given[pool] = n end) end
  for i = at + 2, #ARGV, 3 do
    keys[#keys + 1] = ARGV[i]
    local pool = string.match(ARGV[i], '@(.+)$')
    need[pool] = need[pool] or 0
  end
  for pool in pairs(need) do keys[#keys + 1] = 'segments@' .. pool end
  load(keys)
  for i = at + 2, #ARGV, 3 do
    local have = asset[ARGV[i]]
    local more = tonumber(ARGV[i + 2]) - (have and have.bytes or 0)
    local pool = string.match(ARGV[i], '@(.+)$')
    if more > 0 then need[pool] = need[pool] + more end
  end
  local over = {}
  for pool, n in pairs(need) do
    local free = stored('cap:' .. pool) - (stored('used:' .. pool) - (given[pool] or 0))
    local spare = asset['segments@' .. pool]
    if n > 0 then
      if n > math.max(0, free + (spare and spare.bytes or 0)) then return {'refused', dump(now)} end
      over[pool] = n - free
    end
  end

  if from then remove(from, source) end
  for _, name in ipairs(older) do toLimbo(name) end
  for pool, cut in pairs(over) do
    if cut > 0 then
      local spare = asset['segments@' .. pool]
      use(pool, -cut)
      spare.bytes = spare.bytes - cut
      spare.dirty, spare.gone = true, spare.bytes == 0
    end
    use(pool, need[pool])
  end
  local time = text(now)
  for i = at + 2, #ARGV, 3 do
    local key, bytes = ARGV[i], tonumber(ARGV[i + 2])
    local a = asset[key]
    if not a then
      a = {class = ARGV[i + 1], bytes = bytes, users = 0}
      asset[key] = a
      assets = assets + 1
    end
    a.bytes, a.users, a.at, a.dirty = math.max(a.bytes, bytes), a.users + 1, time, true
  end
  call('HSET', ENTRIES, ATTEMPT, table.concat({'L', time, '0', AMOUNTS, NAMES}, '|'))
  call('ZADD', LEASES, text(now + LEASE), ATTEMPT)
  entries, live = entries + 1, live + 1
  return {'ok', commit()}
end
