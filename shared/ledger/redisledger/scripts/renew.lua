-- Begins new leases. ARGV from 5: attempts. Gives those that have none.
local no = open()
if no then return no end
local lost = {}
for i = 5, #ARGV do
  if redis.call('ZSCORE', LEASES, ARGV[i]) then
    redis.call('ZADD', LEASES, text(now + LEASE), ARGV[i])
  else
    lost[#lost + 1] = ARGV[i]
  end
end
return {'ok', commit(), lost}
