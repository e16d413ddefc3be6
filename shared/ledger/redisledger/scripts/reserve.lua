-- Books an attempt's whole path, in all pools or not at all; grant.lua does it.
local FROM, source, LAST = nil, nil, #ARGV
