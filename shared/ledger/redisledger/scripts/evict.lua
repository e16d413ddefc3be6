-- Takes an idle asset out of all pools. Own: what its fields begin with.
local all, fields, stored = call('HGETALL', BOOK), {}, {}
for i = 1, #all, 2 do
  if string.find(all[i], ARGV[OWN], 1, true) == 1 then
    fields[#fields + 1], stored[all[i]] = all[i], all[i + 1]
  end
end
table.sort(fields)
for _, field in ipairs(fields) do
  local _, size, users = match(stored[field], ASSET)
  if tonumber(users) > 0 then return {'users', users} end
  local name = join({'used:', match(field, '@(.+)$')})
  set[#set + 1], set[#set + 2] = name, text(tonumber(call('HGET', BOOK, name) or '0') - tonumber(size))
  gone[#gone + 1] = field
end
assets = assets - #fields
result = #fields > 0 and '1' or '0'
