-- text is the one place where a number becomes text: other ways round or use exponents or, as %.0f does, take long.
local function text(n) return string.format('%d', n) end
