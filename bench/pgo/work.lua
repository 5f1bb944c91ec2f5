-- An interpreter's daily work: objects, closures, tables, strings. The argument says how much of it.
local scale = tonumber(arg[1])

local Point = {}
Point.__index = Point
function Point.new(x, y) return setmetatable({x = x, y = y}, Point) end
function Point:add(other) return Point.new(self.x + other.x, self.y + other.y) end

local function life(size, steps)
    local grid = {}
    for i = 1, size * size do grid[i] = (i * i % 7 < 3) and 1 or 0 end
    for _ = 1, steps do
        local new = {}
        for y = 0, size - 1 do
            for x = 0, size - 1 do
                local n = 0
                for dy = -1, 1 do
                    for dx = -1, 1 do
                        if dx ~= 0 or dy ~= 0 then
                            n = n + grid[(y + dy) % size * size + (x + dx) % size + 1]
                        end
                    end
                end
                local alive = grid[y * size + x + 1] == 1
                new[y * size + x + 1] = (n == 3 or (alive and n == 2)) and 1 or 0
            end
        end
        grid = new
    end
    return grid
end

local function words(n)
    local seen, parts = {}, {}
    for i = 1, n do
        local w = "k" .. (i * 7919 % 513)
        seen[w] = (seen[w] or 0) + 1
        if i % 3 == 0 then parts[#parts + 1] = w:upper():sub(2, 3) end
    end
    table.sort(parts)
    return #table.concat(parts)
end

local function queens(n)
    local found, cols, d1, d2 = 0, {}, {}, {}
    local function place(row)
        if row > n then found = found + 1 return end
        for c = 1, n do
            if not cols[c] and not d1[row + c] and not d2[row - c + n] then
                cols[c], d1[row + c], d2[row - c + n] = true, true, true
                place(row + 1)
                cols[c], d1[row + c], d2[row - c + n] = nil, nil, nil
            end
        end
    end
    place(1)
    return found
end

local sum = Point.new(0, 0)
for i = 1, scale * 40000 do sum = sum:add(Point.new(i, -i)) end
local alive = 0
for _, cell in ipairs(life(48, scale * 6)) do alive = alive + cell end
print(sum.x, alive, words(scale * 20000), queens(scale > 5 and 8 or 7))
