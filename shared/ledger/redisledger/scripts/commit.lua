-- Writes what was changed. In pieces, as a call takes no more than some thousand arguments.
if #gone > 0 then call('HDEL', BOOK, unpack(gone)) end
ops = text(tonumber(ops) + 1)
set[#set + 1] = 'count'
set[#set + 1] = join({ops, text(now), text(entries), text(assets), rearmed, ahead}, '|')
for i = 1, #set, 1000 do call('HSET', BOOK, unpack(set, i, math.min(i + 999, #set))) end
return {'ok', ops, result}
