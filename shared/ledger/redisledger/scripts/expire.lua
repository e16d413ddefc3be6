-- Puts attempts whose lease is over into limbo, and gives all that are there.
local no = open()
if no then return no end
for _, name in ipairs(redis.call('ZRANGEBYSCORE', LEASES, '-inf', text(now))) do toLimbo(name) end
local limbo = {}
if live < entries then
  local all = redis.call('HGETALL', ENTRIES)
  for i = 1, #all, 2 do
    if string.sub(all[i + 1], 1, 1) == 'X' then limbo[#limbo + 1] = all[i] end
  end
end
return {'ok', commit(), limbo}
