-- What an interpreter does all day: tables with string keys, strings put together, closures, calls.
local words = {}
for i = 1, 400 do words[i] = "word" .. (i * 7919 % 90) end

local function count(list)
    local seen = {}
    for _, w in ipairs(list) do seen[w] = (seen[w] or 0) + 1 end
    return seen
end

local function each(list, act)
    for i = 1, #list do act(list[i], i) end
end

local lines, total = {}, 0
for round = 1, 60 do
    local seen = count(words)
    each(words, function(w, i)
        total = total + seen[w] * i
        if i % 4 == 0 then lines[#lines + 1] = w .. ":" .. i .. ";" .. round end
    end)
    local longest = ""
    for w, n in pairs(seen) do
        if #w + n > #longest then longest = w end
    end
    local keys = {}
    for i = 1, 80 do keys[i] = words[i * 3] end
    table.sort(keys) -- longer lists are sorted with a pivot that the clock chooses
    lines[#lines + 1] = table.concat(keys, ",", 1, 20)
end
print(total, #table.concat(lines, "\n"))
