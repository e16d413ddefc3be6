-- What all operations on a book share. RUN, the life of the store that this text was loaded in, stands above.
--
-- KEYS: book, entries, leases, assets. ARGV: term, epoch, operations seen, lease in ms, then the operation's own.
--   book     hash    gate -> term|epoch|run        count -> operations|written|entries|live entries|assets
--                    boot instance seq             cap:<pool> used:<pool> -> bytes
--   entries  hash    attempt -> state|since|limbo since|pool=bytes,...|asset@pool,...     state L is live, X in limbo
--   leases   zset    live attempt -> end of its lease, ms
--   assets   hash    asset@pool -> class|bytes|users|used at
-- Numbers are doubles here, exact below 2^53; they become text by text() alone, as other ways round or use exponents
-- or, as %.0f does, take long.
local BOOK, ENTRIES, LEASES, ASSETS = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local LEASE = tonumber(ARGV[4])
local now, ops, entries, live, assets
local used, asset = {}, {} -- what was changed of pools, and what was read or changed of assets
local field = {}           -- capacities and sums as they are stored, by field; of ram and shm with the first look
local call = redis.call

local function text(n) return string.format('%d', n) end

-- open checks that this call may change the book: nil, or the reply that says why not. Nothing is written before,
-- except that all leases begin anew when nobody wrote for more than one.
local function open()
  local b = call('HMGET', BOOK, 'gate', 'count', 'cap:ram', 'used:ram', 'cap:shm', 'used:shm')
  field['cap:ram'], field['used:ram'], field['cap:shm'], field['used:shm'] = b[3], b[4], b[5], b[6]
  if not b[1] or not b[2] then return {'closed', 'declared'} end
  if b[1] ~= table.concat({ARGV[1], ARGV[2], RUN}, '|') then
    local term, epoch, run = string.match(b[1], '^(%d+)|([^|]*)|(.*)$')
    if tonumber(ARGV[1]) < tonumber(term) then return {'term', term} end
    if epoch ~= ARGV[2] then return {'closed', 'epoch'} end
    if run ~= RUN then return {'closed', 'run'} end
    return {'closed', 'ops'} -- each reign puts its term on every book: one of an earlier term came back
  end
  local o, written, e, l, a = string.match(b[2], '^(%d+)|(%d+)|(%d+)|(%d+)|(%d+)$')
  ops, now, entries, live, assets = tonumber(o), tonumber(written), tonumber(e), tonumber(l), tonumber(a)
  if ops < tonumber(ARGV[3]) then return {'closed', 'ops'} end
  local before = now
  now = math.max(clock(), before)
  if now - before > LEASE then
    for _, name in ipairs(call('ZRANGE', LEASES, 0, -1)) do
      call('ZADD', LEASES, text(now + LEASE), name)
    end
    call('HSET', BOOK, 'count', table.concat({o, text(now), e, l, a}, '|'))
  end
  return nil
end

-- each calls f(pool, bytes) for what an amounts text lists.
local function each(amounts, f)
  for pool, n in string.gmatch(amounts, '([^=,]+)=(%d+)') do f(pool, tonumber(n)) end
end

-- stored gives a pool's field as a number, 0 when there is none.
local function stored(name)
  if field[name] == nil then field[name] = call('HGET', BOOK, name) end
  return tonumber(field[name] or '0')
end

-- use changes what a pool holds.
local function use(pool, by)
  used[pool] = (used[pool] or stored('used:' .. pool)) + by
end

-- load reads assets: each becomes a table, or false when there is none.
local function load(keys)
  if #keys == 0 then return end
  local texts = call('HMGET', ASSETS, unpack(keys))
  for i, key in ipairs(keys) do
    asset[key] = false
    if texts[i] then
      local class, bytes, users, at = string.match(texts[i], '^(%l+)|(%d+)|(%d+)|(%d+)$')
      asset[key] = {class = class, bytes = tonumber(bytes), users = tonumber(users), at = at}
    end
  end
end

local function parse(entry)
  local state, since, limbo, amounts, keys = string.match(entry, '^(%u)|(%d+)|(%d+)|([^|]*)|([^|]*)$')
  return {state, since, limbo, amounts, keys, state = state, amounts = amounts, keys = keys}
end

-- remove takes an entry out; its assets stay.
local function remove(name, e)
  call('HDEL', ENTRIES, name)
  entries = entries - 1
  if e.state == 'L' then
    call('ZREM', LEASES, name)
    live = live - 1
  end
  each(e.amounts, function(pool, n) use(pool, -n) end)
  local missing = {}
  for key in string.gmatch(e.keys, '[^,]+') do
    if asset[key] == nil then missing[#missing + 1] = key end
  end
  load(missing)
  for key in string.gmatch(e.keys, '[^,]+') do
    local a = asset[key]
    if a then a.users, a.at, a.dirty = a.users - 1, text(now), true end
  end
end

-- commit writes what was changed and gives the count of operations.
local function commit()
  for key, a in pairs(asset) do
    if a and a.gone then
      call('HDEL', ASSETS, key)
      assets = assets - 1
    elseif a and a.dirty then
      call('HSET', ASSETS, key, table.concat({a.class, text(a.bytes), text(a.users), a.at}, '|'))
    end
  end
  ops = text(ops + 1)
  local fields = {'count', table.concat({ops, text(now), text(entries), text(live), text(assets)}, '|')}
  for pool, n in pairs(used) do
    fields[#fields + 1] = 'used:' .. pool
    fields[#fields + 1] = text(n)
  end
  call('HSET', BOOK, unpack(fields))
  return ops
end
