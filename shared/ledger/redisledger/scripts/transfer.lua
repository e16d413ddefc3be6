-- Releases one attempt and books another one in one step. ARGV 10: the attempt that gives.
local no = open()
if no then return no end
local from = ARGV[10]
local both = call('HMGET', ENTRIES, from, ATTEMPT)
local source, entry = both[1], both[2]
if entry then
  local e = parse(entry)
  if source and e.state == 'L' and e.amounts == AMOUNTS and e.keys == NAMES then return {'both'} end
  return again(entry)
end
if not source then return {'missing', from} end
source = parse(source)
if source.state ~= 'L' then return {'limbo', from} end
return grant(from, source, 11, call('HKEYS', ENTRIES))
