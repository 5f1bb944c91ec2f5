"""Programs that compute, as commands on inputs of any size (at scale 1 each takes about ten seconds), how long
they take, and a table of the times."""

import os
import random
import statistics
import subprocess
import time

SQL = (
    "create table t(a integer primary key, b text, c real);"
    "with recursive n(x) as (select 1 union all select x+1 from n where x<{0})"
    " insert into t select x, 'row ' || (x*7919 % 10007), x*0.5 from n;"
    "create index i on t(b);"
    "select count(*), sum(c) from t where b like '%77%';"
    "select b, count(*) from t group by b order by 2 desc, 1 limit 5;"
)
LUA = """
local t, s = {{}}, 0
for i = 1, {0} do
  t[i % 1000 + 1] = (t[i % 1000 + 1] or 0) + i % 7
  if i % 16 == 0 then s = s + #tostring(i) end
end
print(s, t[77])
"""
PERL = """
my (%h, $s);
for my $i (1..{0}) {{ $h{{$i % 1009}} .= "x" if $i % 11 == 0; $s += ($i * 7) % 13; }}
my $n = 0; for (sort keys %h) {{ $n += length $h{{$_}} if /7/ }} print "$s $n\\n";
"""
PYTHON = """
class Point:
    def __init__(self, x, y): self.x, self.y = x, y
    def plus(self, other): return Point(self.x + other.x, self.y - other.y)
total, seen = Point(0, 0), {{}}
for i in range({0}):
    total = total.plus(Point(i % 7, i % 5))
    seen[i % 997] = seen.get(i % 997, 0) + 1
print(total.x, total.y, len(seen))
"""


def programs(folder, scale):
    def text(name, megabytes):
        """Words with frequencies as in texts: few are frequent, many are rare."""
        chance = random.Random(1)
        words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(5000)]
        path = os.path.join(folder, name)
        with open(path, "w", encoding="ascii") as file:
            while file.tell() < megabytes * scale * 1e6:
                picked = [words[int(len(words) * chance.random() ** 3)] for _ in range(2000)]
                file.write(" ".join(picked) + "\n")
        return path

    def n(count):
        return str(max(1, int(count * scale)))

    return {
        "bzip2": lambda: ["bzip2", "-c", text("bzip2", 115)],
        "gzip": lambda: ["gzip", "-c", text("gzip", 170)],
        "xz": lambda: ["xz", "-T1", "-2", "-c", text("xz", 130)],
        "lua5.4": lambda: ["lua5.4", "-e", LUA.format(n(170e6))],
        "python3": lambda: ["/usr/bin/python3", "-c", PYTHON.format(n(22e6))],
        "perl": lambda: ["perl", "-e", PERL.format(n(60e6))],
        "sqlite3": lambda: ["sqlite3", ":memory:", SQL.format(n(8e6))],
    }


def seconds(command):
    began = time.monotonic()
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


def cells(ratios):
    return "".join(f" {ratio:11.2f}x" for ratio in ratios)


def print_summary(table, width):
    """Summarises the rows of the programs, which have a ratio in each column."""
    rows = [list(row.values()) for row in table.values()]
    for what, of in (("median", statistics.median), ("worst", max)):
        if rows:
            print(f"{what:{width}}" + cells(of(column) for column in zip(*rows)))
