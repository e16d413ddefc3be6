-- What all operations on a book share. RUN, the life of the store that this text was loaded in, stands above.
--
-- KEYS: book, entries, leases, assets. ARGV: term, epoch, operations seen, lease in ms, then the operation's own.
--   book     hash    term epoch run boot instance seq ops written entries live assets cap:<pool> used:<pool>
--   entries  hash    attempt -> state|since|limbo since|pool=bytes,...|asset@pool,...     state L is live, X in limbo
--   leases   zset    live attempt -> end of its lease, ms
--   assets   hash    asset@pool -> class|bytes|users|used at
-- Numbers are doubles here, exact below 2^53; they become text by text() alone, as other ways round or use exponents.
local BOOK, ENTRIES, LEASES, ASSETS = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local LEASE = tonumber(ARGV[4])
local book = {}
local now, ops, entries, live, assets
local used, asset, assetDirty = {}, {}, {}

local function text(n) return string.format('%.0f', n) end

-- dump gives the whole book as it is stored, and the time.
local function dump(time)
  return {text(time), redis.call('HGETALL', BOOK), redis.call('HGETALL', ENTRIES),
    redis.call('ZRANGE', LEASES, 0, -1, 'WITHSCORES'), redis.call('HGETALL', ASSETS)}
end

-- open checks that this call may change the book: nil, or the reply that says why not. Nothing is written before,
-- except that all leases begin anew when nobody wrote for more than one.
local function open()
  local stored = redis.call('HGETALL', BOOK)
  for i = 1, #stored, 2 do book[stored[i]] = stored[i + 1] end
  for _, field in ipairs({'term', 'epoch', 'run', 'ops', 'written', 'entries', 'live', 'assets'}) do
    if not book[field] then return {'closed', 'declared'} end
  end
  if tonumber(ARGV[1]) < tonumber(book.term) then return {'term', book.term} end
  if book.epoch ~= ARGV[2] then return {'closed', 'epoch'} end
  if book.run ~= RUN then return {'closed', 'run'} end
  ops = tonumber(book.ops)
  if ops < tonumber(ARGV[3]) then return {'closed', 'ops'} end
  entries, live, assets = tonumber(book.entries), tonumber(book.live), tonumber(book.assets)
  local written = tonumber(book.written)
  now = math.max(clock(), written)
  if now - written > LEASE then
    for _, name in ipairs(redis.call('ZRANGE', LEASES, 0, -1)) do
      redis.call('ZADD', LEASES, text(now + LEASE), name)
    end
    redis.call('HSET', BOOK, 'written', text(now))
  end
  return nil
end

-- whole tells whether all keys of the book are there, by their counts.
local function whole()
  return redis.call('HLEN', ENTRIES) == entries and redis.call('ZCARD', LEASES) == live
    and redis.call('HLEN', ASSETS) == assets
end

-- each calls f(pool, bytes) for what an amounts text lists.
local function each(amounts, f)
  for pool, n in string.gmatch(amounts, '([^=,]+)=(%d+)') do f(pool, tonumber(n)) end
end

-- usedOf reads what a pool holds; use changes it.
local function usedOf(pool) return used[pool] or tonumber(book['used:' .. pool] or '0') end

local function use(pool, by) used[pool] = usedOf(pool) + by end

-- load reads assets, of which there may be none; assetOf gives one: a table, or false. Change it only with touch.
local function load(keys)
  if #keys == 0 then return end
  local stored = redis.call('HMGET', ASSETS, unpack(keys))
  for i, key in ipairs(keys) do
    asset[key] = false
    if stored[i] then
      local class, bytes, users, at = string.match(stored[i], '^(%l+)|(%d+)|(%d+)|(%d+)$')
      asset[key] = {class = class, bytes = tonumber(bytes), users = tonumber(users), at = tonumber(at)}
    end
  end
end

local function assetOf(key)
  if asset[key] == nil then load({key}) end
  return asset[key]
end

local function touch(key, a)
  asset[key] = a
  assetDirty[key] = true
end

local function parse(entry)
  local state, since, limbo, amounts, keys = string.match(entry, '^(%u)|(%d+)|(%d+)|([^|]*)|([^|]*)$')
  return {state = state, since = since, limbo = limbo, amounts = amounts, keys = keys}
end

local function store(name, e)
  redis.call('HSET', ENTRIES, name, table.concat({e.state, e.since, e.limbo, e.amounts, e.keys}, '|'))
end

-- toLimbo fences a live entry out; its bytes count on.
local function toLimbo(name)
  local e = parse(redis.call('HGET', ENTRIES, name))
  e.state, e.limbo = 'X', text(now)
  redis.call('ZREM', LEASES, name)
  store(name, e)
  live = live - 1
end

-- remove takes an entry out; its assets stay.
local function remove(name, e)
  redis.call('HDEL', ENTRIES, name)
  entries = entries - 1
  if e.state == 'L' then
    redis.call('ZREM', LEASES, name)
    live = live - 1
  end
  each(e.amounts, function(pool, n) use(pool, -n) end)
  for key in string.gmatch(e.keys, '[^,]+') do
    local a = assetOf(key)
    if a then
      a.users, a.at = a.users - 1, now
      touch(key, a)
    end
  end
end

-- commit writes what was gathered and gives the count of operations.
local function commit()
  local changed = {}
  for key in pairs(assetDirty) do
    local a = asset[key]
    if a then
      changed[#changed + 1] = key
      changed[#changed + 1] = table.concat({a.class, text(a.bytes), text(a.users), text(a.at)}, '|')
    else
      redis.call('HDEL', ASSETS, key)
    end
  end
  if #changed > 0 then redis.call('HSET', ASSETS, unpack(changed)) end
  ops = ops + 1
  local fields = {'written', text(now), 'ops', text(ops), 'entries', text(entries), 'live', text(live),
    'assets', text(assets)}
  for pool, n in pairs(used) do
    fields[#fields + 1] = 'used:' .. pool
    fields[#fields + 1] = text(n)
  end
  redis.call('HSET', BOOK, unpack(fields))
  return text(ops)
end
