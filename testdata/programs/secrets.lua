-- Keeps the secrets of a file, a line of hexadecimal digits each, in all kinds of values.
by_text, numbers, closures, waiting = {}, {}, {}, {}

local function keep(secret)
  local long = secret .. (" long"):rep(10) .. secret
  by_text[secret] = {secret .. "!", long = long}
  by_text[long] = true
  numbers[#numbers + 1] = #secret == 8 and string.unpack and string.unpack("<i8", secret) or 1.5
  closures[#closures + 1] = function() return secret, long end
  waiting[#waiting + 1] = coroutine.create(function(text) coroutine.yield(text) end)
  coroutine.resume(waiting[#waiting], secret .. "?")
end

for line in io.lines(arg[1]) do
  keep((line:gsub("%x%x", function(digits) return string.char(tonumber(digits, 16)) end)))
end
print("ready")
io.flush()
io.read("*l")
