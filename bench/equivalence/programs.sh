# Real programs that are kept busy for as long as a campaign wants. The campaigns source this file.
#
# make_inputs FOLDER writes the inputs. Then the array `programs` has the names, and
# command_of NAME sets `command` to the command line.

make_inputs() {
    inputs=$1
    mkdir -p "$inputs"
    # Text, code and noise.
    {
        seq 1 400000 | sed 's/7/seven /g'
        cat "$(readlink -f "$(command -v openssl)")" "$(readlink -f "$(command -v perl)")"
        head -c 4000000 /dev/urandom
    } >"$inputs/mixed"
    cat >"$inputs/work.py" <<'PY'
import decimal, hashlib, json, re, struct, zlib
from collections import Counter, deque
class Node:
    __slots__ = ('key', 'left', 'right')
    def __init__(self, key):
        self.key, self.left, self.right = key, None, None
def insert(root, key):
    while key != root.key:
        side = 'left' if key < root.key else 'right'
        if getattr(root, side) is None:
            setattr(root, side, Node(key))
        root = getattr(root, side)
def numbers(n):
    for i in range(n):
        yield i * 1.25 - (i % 7) ** 0.5
round = 0
while True:
    round += 1
    root = Node(500)
    for i in range(300):
        insert(root, i * 7919 * round % 1000)
    text = json.dumps({'k%d' % i: [x, str(x), None, i % 2 == 0] for i, x in enumerate(numbers(50))})
    back = json.loads(text)
    words = Counter(re.findall(r'[a-z]+|\d+(?:\.\d+)?', text))
    big = 3 ** (200 + round % 50) % (2 ** 127 - 1)
    digest = hashlib.sha256(zlib.compress(text.encode())).hexdigest()
    queue = deque(sorted(words, key=lambda w: (words[w], w)), maxlen=40)
    ratio = decimal.Decimal(big) / decimal.Decimal(round + 1)
    try:
        [][len(queue)]
    except IndexError as error:
        text = '%s %s %r' % (error, digest, ratio)
    struct.unpack('<4d', struct.pack('<4d', *(float(len(queue)) for _ in range(4))))
PY
    cat >"$inputs/work.pl" <<'PERL'
use strict; use warnings;
my (%seen, $sum);
for (my $i = 1; ; $i++) {
    my $line = sprintf('%05d:%s:%.3f', $i % 20000, 'x' x ($i % 13), sqrt($i));
    my ($n, $x, $root) = split /:/, $line;
    $seen{$n} .= $1 . lc $x if $root =~ /^(\d+)\.(\d)/;
    my @sorted = sort { $a <=> $b } map { $_ * $i % 101 } 1 .. 12;
    $sum += $sorted[5] + length join ',', reverse @sorted;
    (my $text = $line) =~ tr/0-9/a-j/;
    $text =~ s/([a-e]+)/<$1>/g;
    eval { die { at => $i } if $i % 50 == 0 };
    %seen = () if $i % 5000 == 0;
}
PERL
    cat >"$inputs/work.lua" <<'LUA'
local function fibonacci(n) if n < 2 then return n end return fibonacci(n - 1) + fibonacci(n - 2) end
local round = 0
while true do
    round = round + 1
    local t = {}
    for i = 1, 400 do t[i] = (i * 7919 + round) % 1009 end
    table.sort(t)
    local words = {}
    for i, v in ipairs(t) do words['k' .. v] = (words['k' .. v] or 0) + i / 3 end
    local text = table.concat(t, ',')
    for n in text:gmatch('%d+') do words[n] = string.format('%x %.2f', n, math.sin(n)) end
    local co = coroutine.wrap(function() for i = 1, 50 do coroutine.yield(fibonacci(i % 12)) end end)
    for _ = 1, 50 do round = round + (co() & 0) end
    pcall(error, { text:sub(1, round % 20), text:gsub('1', 'one') })
end
LUA
    cat >"$inputs/work.sql" <<'SQL'
create table t(id integer primary key, name text, x real, y integer);
create index by_name on t(name);
insert into t with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)
    select i, printf('%08x', i * 2654435761 % 4294967296), i / 7.0, i * 7919 % 1009 from n;
with recursive rounds(i) as (select 1 union all select i + 1 from rounds where i < 100000)
    select count(*) from rounds where (
        select sum(length(a.name) * b.x + b.y) from t a join t b on a.y = b.id
        where a.name like '%' || (rounds.i % 100) || '%' or b.name > printf('%x', rounds.i % 16)
        group by b.y % 17 order by avg(b.x) desc limit 1) is not null;
SQL
}

programs=(gzip xz bzip2 python3 perl lua5.4 sqlite3 openssl-aes-gcm openssl-aes-cbc openssl-sha256
    openssl-sha512 openssl-chacha20 openssl-rsa2048 openssl-ecdsa throwing)

command_of() {
    local speed=(openssl speed -elapsed -seconds 100000 -bytes 16384)
    local file=$inputs/mixed
    case $1 in
        gzip) command=(gzip -9 -c "$file" "$file" "$file" "$file" "$file" "$file") ;;
        xz) command=(xz -T1 -6 -c "$file" "$file" "$file" "$file" "$file" "$file") ;;
        bzip2) command=(bzip2 -9 -c "$file" "$file" "$file" "$file" "$file" "$file") ;;
        python3) command=(/usr/bin/python3 "$inputs/work.py") ;;
        perl) command=(perl "$inputs/work.pl") ;;
        lua5.4) command=(lua5.4 "$inputs/work.lua") ;;
        sqlite3) command=(sqlite3 :memory: ".read $inputs/work.sql") ;;
        openssl-aes-gcm) command=("${speed[@]}" -evp aes-256-gcm) ;;
        openssl-aes-cbc) command=("${speed[@]}" -evp aes-128-cbc) ;;
        openssl-sha256) command=("${speed[@]}" -evp sha256) ;;
        openssl-sha512) command=("${speed[@]}" -evp sha512) ;;
        openssl-chacha20) command=("${speed[@]}" -evp chacha20-poly1305) ;;
        openssl-rsa2048) command=(openssl speed -elapsed -seconds 100000 rsa2048) ;;
        openssl-ecdsa) command=(openssl speed -elapsed -seconds 100000 ecdsap256) ;;
        throwing) command=("$build/bench/equivalence/throwing") ;;
    esac
}
