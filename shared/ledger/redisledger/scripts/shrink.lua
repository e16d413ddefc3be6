-- Lowers what an attempt holds. Fields: the partition's. Own: fence, amounts that it keeps at most.
local field, list, keep, found = ARGV[5], {}, {}, nil
for pool, n in gmatch(ARGV[OWN + 1], '([^=,]+)=(%d+)') do keep[pool] = tonumber(n) end
for entry in gmatch(have[field] or '', '[^;]+') do
  local e = {match(entry, ENTRY)}
  if e[1] == ARGV[OWN] then
    local left = {}
    found = e[5]
    for pool, n in gmatch(found, '([^=,]+)=(%d+)') do
      local rest = math.min(tonumber(n), keep[pool] or 0)
      if rest > 0 then left[#left + 1] = join({pool, text(rest)}, '=') end
    end
    e[5] = join(left, ',')
  end
  list[#list + 1] = join(e, '|')
end
if not found then return {'missing'} end
for pool, n in gmatch(found, '([^=,]+)=(%d+)') do
  local rest = math.min(tonumber(n), keep[pool] or 0)
  local name = 'used:' .. pool
  local used = tonumber(call('HGET', BOOK, name) or '0')
  set[#set + 1], set[#set + 2] = name, text(used - (tonumber(n) - rest))
end
set[#set + 1], set[#set + 2] = field, join(list, ';')
gone[1] = '-' -- a script that began to write may go on where the store has no memory left
