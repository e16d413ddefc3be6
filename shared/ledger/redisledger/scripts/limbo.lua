-- toLimbo fences a live entry out; its bytes count on.
local function toLimbo(name)
  local e = parse(redis.call('HGET', ENTRIES, name))
  e[1], e[3] = 'X', text(now)
  redis.call('ZREM', LEASES, name)
  redis.call('HSET', ENTRIES, name, table.concat(e, '|'))
  live = live - 1
end
