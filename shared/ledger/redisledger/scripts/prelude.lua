-- What all operations on a book begin with. RUN, the life of the store that this text was loaded in, clock() and text()
-- stand above; commit.lua ends those that change the book. It is straight code, as Lua makes a function anew in each
-- call of a script, and asks the store as few things as it can, as each one costs more than all the rest.
--
-- KEYS: the book, a hash:
--   gate                    term|epoch|run
--   count                   operations|written|entries|assets|rearmed, and |ahead while it is not 0
--   boot instance seq       of the last declaration
--   cap:<pool> used:<pool>  bytes
--   e:<job>.<partition>.    fence|state|since|till|pool=bytes,...|asset@pool,... of each attempt, joined by ';'
--   a:<asset>@<pool>        class|bytes|users|used at
-- Written is the book's time of the last change. It never falls: ahead is how far it is ahead of the store's clock, which
-- went back. State L is live and till the end of its lease, or rearmed where that is later; X is in limbo, and till
-- since when.
-- ARGV: term|epoch|, operations seen, lease in ms, how many fields to read, their names, then the operation's own from
-- OWN on. Times are in ms. Numbers are doubles here, exact below 2^53.
local BOOK, LEASE, READ = KEYS[1], tonumber(ARGV[3]), tonumber(ARGV[4])
local OWN = 5 + READ
local ENTRY, ASSET = '^(%d+)|(%u)|(%d+)|(%d+)|([^|]*)|([^|]*)$', '^(%l+)|(%d+)|(%d+)|(%d+)$'
local call, match, gmatch, join = redis.call, string.match, string.gmatch, table.concat

-- May this call change the book? Nothing is written before, except that all leases begin anew when nobody wrote for
-- more than one.
local got = call('HMGET', BOOK, 'gate', 'count', unpack(ARGV, 5, 4 + READ))
if not got[1] or not got[2] then return {'closed', 'declared'} end
if got[1] ~= join({ARGV[1], RUN}) then
  local term, epoch, run = match(got[1], '^(%d+)|([^|]*)|(.*)$')
  local mine, expected = match(ARGV[1], '^(%d+)|([^|]*)|$')
  if tonumber(mine) < tonumber(term) then return {'term', term} end
  if epoch ~= expected then return {'closed', 'epoch'} end
  if run ~= RUN then return {'closed', 'run'} end
  return {'closed', 'ops'} -- each reign puts its term on every book: one of an earlier term came back
end
local ops, written, entries, assets, rearmed, ahead = match(got[2], '^(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|?(%d*)$')
if tonumber(ops) < tonumber(ARGV[2]) then return {'closed', 'ops'} end
local CLOCK, now = clock(), tonumber(written)
if CLOCK < now then -- it went back: the book's time goes on from what was written
  now = math.max(now, CLOCK + (tonumber(ahead) or 0))
  ahead = text(now - CLOCK)
else
  now, ahead = CLOCK, nil
end
if now - tonumber(written) > LEASE then
  rearmed = text(now + LEASE)
  call('HDEL', BOOK, '-') -- a script that began to write may go on where the store has no memory left
  call('HSET', BOOK, 'count', join({ops, text(now), entries, assets, rearmed, ahead}, '|'))
end
entries, assets = tonumber(entries), tonumber(assets)

local have = {}         -- the fields that were read; false is none
for i = 1, READ do have[ARGV[4 + i]] = got[2 + i] end
local set, gone = {}, {} -- what is to be written: fields and their texts, and fields to take out
local result            -- of the operation, behind the count of operations
