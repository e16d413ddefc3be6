-- dump gives the whole book as it is stored, and the time.
local function dump(time)
  return {text(time), redis.call('HGETALL', BOOK), redis.call('HGETALL', ENTRIES),
    redis.call('ZRANGE', LEASES, 0, -1, 'WITHSCORES'), redis.call('HGETALL', ASSETS)}
end
