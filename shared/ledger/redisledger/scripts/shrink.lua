-- Lowers what an attempt holds. ARGV 5: attempt, 6: amounts that it keeps at most.
local no = open()
if no then return no end
local entry = redis.call('HGET', ENTRIES, ARGV[5])
if not entry then return {'missing', ARGV[5]} end
local e = parse(entry)
local keep, left = {}, {}
each(ARGV[6], function(pool, n) keep[pool] = n end)
each(e.amounts, function(pool, n)
  local rest = math.min(n, keep[pool] or 0)
  if rest < n then use(pool, rest - n) end
  if rest > 0 then left[#left + 1] = pool .. '=' .. text(rest) end
end)
e[4] = table.concat(left, ',')
redis.call('HSET', ENTRIES, ARGV[5], table.concat(e, '|'))
return {'ok', commit()}
