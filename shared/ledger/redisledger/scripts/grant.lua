-- What reserve and transfer share. ARGV from 5: attempt, its text up to the fence, fence, amounts, assets' names; then
-- from the place given: entries at most, assets at most, and for each asset its name, class and bytes.
local ATTEMPT, PARTITION, FENCE, AMOUNTS, NAMES = ARGV[5], ARGV[6], tonumber(ARGV[7]), ARGV[8], ARGV[9]

-- again renews a reservation that is there already.
local function again()
  redis.call('ZADD', LEASES, text(now + LEASE), ATTEMPT)
  return {'ok', commit()}
end

-- same compares an entry with what is asked for: nil, or the reply that says how they differ.
local function same(entry)
  local e = parse(entry)
  if e.state ~= 'L' then return {'limbo', ATTEMPT} end
  if e.amounts ~= AMOUNTS or e.keys ~= NAMES then return {'other'} end
  return nil
end

-- grant books the attempt, in place of from's entry when there is one.
local function grant(from, source, at)
  if not whole() then return {'closed', 'damaged'} end
  local older = {}
  for _, name in ipairs(redis.call('HKEYS', ENTRIES)) do
    if string.sub(name, 1, #PARTITION) == PARTITION then
      if tonumber(string.sub(name, #PARTITION + 1)) > FENCE then return {'fenced'} end
      if name ~= from and redis.call('ZSCORE', LEASES, name) then older[#older + 1] = name end
    end
  end
  local wanted = (#ARGV - at - 1) / 3
  if entries >= tonumber(ARGV[at]) and not from or assets + wanted > tonumber(ARGV[at + 1]) then return {'full'} end

  local need, given, keys = {}, {}, {}
  each(AMOUNTS, function(pool, n) need[pool] = n end)
  if source then each(source.amounts, function(pool, n) given[pool] = n end) end
  for i = at + 2, #ARGV, 3 do keys[#keys + 1] = ARGV[i] end
  for pool in pairs(need) do keys[#keys + 1] = 'segments@' .. pool end
  load(keys)
  for i = at + 2, #ARGV, 3 do
    local have = assetOf(ARGV[i])
    local more = tonumber(ARGV[i + 2]) - (have and have.bytes or 0)
    local pool = string.match(ARGV[i], '@(.+)$')
    if more > 0 then need[pool] = (need[pool] or 0) + more end
  end
  local over = {}
  for pool, n in pairs(need) do
    local free = tonumber(book['cap:' .. pool] or '0') - (usedOf(pool) - (given[pool] or 0))
    local spare = assetOf('segments@' .. pool)
    if n > math.max(0, free + (spare and spare.bytes or 0)) then return {'refused', dump(now)} end
    over[pool] = n - free
  end

  if from then remove(from, source) end
  for _, name in ipairs(older) do toLimbo(name) end
  for pool, cut in pairs(over) do
    if cut > 0 then
      local key = 'segments@' .. pool
      local spare = assetOf(key)
      use(pool, -cut)
      spare.bytes = spare.bytes - cut
      if spare.bytes > 0 then
        touch(key, spare)
      else
        touch(key, false)
        assets = assets - 1
      end
    end
  end
  for pool, n in pairs(need) do use(pool, n) end
  for i = at + 2, #ARGV, 3 do
    local key, class, bytes = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
    local a = assetOf(key)
    if not a then
      a = {class = class, bytes = bytes, users = 0}
      assets = assets + 1
    end
    a.bytes, a.users, a.at = math.max(a.bytes, bytes), a.users + 1, now
    touch(key, a)
  end
  store(ATTEMPT, {state = 'L', since = text(now), limbo = '0', amounts = AMOUNTS, keys = NAMES})
  redis.call('ZADD', LEASES, text(now + LEASE), ATTEMPT)
  entries, live = entries + 1, live + 1
  return {'ok', commit()}
end
