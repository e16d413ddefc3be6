-- dump gives the whole book as it is stored, and the time.
local function dump(time)
  return {text(time), redis.call('HGETALL', KEYS[1])}
end
