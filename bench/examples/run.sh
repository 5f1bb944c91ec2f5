#!/usr/bin/env bash
# Profiles ordinary programs for some ten seconds each, at the defaults, and keeps what `shadowprof report`
# prints first, unedited:
#   bench/examples/run.sh FOLDER [NAME...]
# Uses the build folder BUILD, by default build. Programs that are not installed are left out.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
shadowprof=$(cd "${BUILD:-$root/build}" && pwd)/shadowprof
[[ $# -ge 1 ]] || { sed -n '2,5s/^# \?//p' "$0" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
seconds=10
lines=60

# Text like source code, of the same words in another order each time.
awk 'BEGIN { srand(1); n = split("int return struct const for if while size char void static unsigned list tree " \
  "node left right value key next prev head tail count index begin end", w, " ")
  for (i = 0; i < 600000; ++i) { for (j = 0; j < 9; ++j) printf "%s_%d ", w[int(rand() * n) + 1], rand() * 900
  print "" } }' > text
cat > sort.js <<'S'
const end = Date.now() + 12e3;
let n = 0;
while (Date.now() < end) {
  const list = Array.from({length: 20000}, (_, i) => ({key: (i * 7919) % 10007, name: "name" + i}));
  list.sort((a, b) => a.key - b.key || a.name.localeCompare(b.name));
  n += JSON.parse(JSON.stringify(list)).length;
}
S
cat > words.py <<'S'
import collections, json, re, time
end = time.time() + 12
lines = open("text").read().splitlines()[:20000]
while time.time() < end:
    counts = collections.Counter(w for line in lines for w in re.findall(r"[a-z]+_\d+", line))
    top = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:100]
    json.loads(json.dumps(dict(top)))
S
cat > objects.rb <<'S'
finish = Time.now + 12
while Time.now < finish
  people = (1..20000).map { |i| {id: i, name: "name#{i * 7919 % 10007}"} }
  people.group_by { |p| p[:name].length }.transform_values { |l| l.sort_by { |p| p[:name] }.first }
end
S
cat > tree.pl <<'S'
my $end = time + 12;
while (time < $end) { my %h; for my $i (1 .. 50000) { $h{($i * 7919) % 10007} .= "x$i" }
  my $n = 0; $n += length($h{$_}) for sort { $a <=> $b } keys %h; }
S
cat > strings.lua <<'S'
local finish = os.time() + 12
while os.time() < finish do
  local t = {}
  for i = 1, 50000 do t[i] = string.format("%d:%s", (i * 7919) % 10007, tostring(i)) end
  table.sort(t)
end
S
cat > Maps.java <<'S'
import java.util.*;
public class Maps {
    public static void main(String[] words) {
        long end = System.currentTimeMillis() + 12000, sum = 0;
        while (System.currentTimeMillis() < end) {
            Map<Integer, String> map = new HashMap<>();
            for (int i = 0; i < 100000; ++i) map.merge(i * 7919 % 10007, "x", String::concat);
            for (String each : map.values()) sum += each.length();
        }
        System.out.println(sum > 0);
    }
}
S
cat > list.cpp <<'S'
#include <chrono>
#include <list>
#include <map>
#include <random>
#include <vector>
int main() {
    std::mt19937 random(1);
    std::vector<std::list<long>> lists(64);
    for (int i = 0; i < 2000000; ++i) lists[random() % 64].push_back(i);
    std::map<long, long> tree;
    for (int i = 0; i < 300000; ++i) tree[random()] = i;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(12);
    long sum = 0;
    while (std::chrono::steady_clock::now() < end) {
        for (const auto& list : lists) for (long each : list) sum += each;
        for (const auto& [key, value] : tree) sum ^= key + value;
    }
    return sum == 1;
}
S
cat > locks.cpp <<'S'
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>
std::mutex mutex;
std::vector<long> shared(1000);
void add(long seed) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(12);
    while (std::chrono::steady_clock::now() < end)
        for (int i = 0; i < 1000; ++i) {
            const std::lock_guard lock(mutex);
            for (auto& each : shared) each += seed;
        }
}
int main() {
    std::thread one(add, 1), other(add, 2);
    one.join();
    other.join();
}
S
declare -A command=(
  [bzip2]='cat text text text text text text | bzip2 -9' [gzip]='gzip -9 -c text text text text text text text text'
  [xz]='xz -6 -c text' [zstd]='zstd -17 -T2 -q -c text' [sqlite3]="sqlite3 :memory: 'create table t(a,b);
    with recursive c(x) as (select 1 union all select x+1 from c where x<2000000) insert into t select x, x*7919%1000003
    from c; create index i on t(b); select count(*), sum(x.a) from t x, t y where x.b=y.a and y.b%3=0;
    select b%1000, count(*), avg(a) from t group by 1 order by 2 limit 1;'"
  [openssl]='openssl speed -seconds 10 sha256' [perl]='perl tree.pl' [python3]='/usr/bin/python3 words.py'
  [ruby]='ruby objects.rb' [node]='node sort.js' [node-names]='node --perf-basic-prof sort.js' [lua]='lua5.4 strings.lua'
  [java]='java Maps' [cc1plus]="\$(g++ -print-prog-name=cc1plus) -quiet -O2 all.cpp -o /dev/null"
  [list]='./list' [locks]='./locks' [pipeline]='sort -r text | uniq -c | sort -n | tail -1'
  [dd]='dd if=/dev/zero of=/dev/null bs=4k count=30000000' [sleep]='sleep 3' [git]='git fsck --full' [sort]='sort --parallel=2 text text'
  [make]='make -s -j2' [ffmpeg]='ffmpeg -loglevel error -f lavfi -i testsrc2=size=1280x720:rate=30 -t 60 -c:v libx264 -f null -'
  [povray]='povray +Ispheres.pov +Oout.png +W1600 +H1200 +A -D'
  [nginx]='nginx -p . -c nginx.conf & sleep 0.5; wrk -t1 -c8 -d9 -H Accept-Encoding:gzip http://127.0.0.1:8098/page | cat; kill $!'
  [redis]='redis-server --port 6399 --save "" & sleep 0.5; redis-benchmark -p 6399 -q -n 2000000 -t set,get,lrange_100 | cat')
prepare() {
  case $1 in
    make) for i in $(seq 16); do
        { echo "#include <math.h>"
          for k in $(seq 150); do echo "double f${i}_$k(double* a, int n) { double s = 0; for (int i = 0; i < n; ++i) {" \
            "s += sqrt(a[i] * $k) + sin(a[(i * $k) % n]); if (s > 1e9) s = fmod(s, $k.5); } return s; }"; done; } > "unit$i.c"
      done
      printf 'CFLAGS = -O2\nall: %s\n' "$(for i in $(seq 16); do printf 'unit%d.o ' "$i"; done)" > Makefile ;;
    povray) { echo 'camera { location <0, 3, -8> look_at 0 } light_source { <5, 9, -6> 1 } plane { y, -1 pigment { checker } }'
      for i in $(seq 200); do echo "sphere { <$((i * 7 % 11 - 5)), $((i * 3 % 5)), $((i * 5 % 13))>, 0.4 pigment { rgb <0.$((i % 9)), 0.5, 0.7> }" \
        "finish { reflection 0.3 phong 1 } }"; done; } > spheres.pov ;;
    nginx) printf 'user root; worker_processes 2; daemon off; pid n.pid; error_log stderr; events {} http { access_log off; gzip on; %s }\n' \
      'gzip_types text/plain; default_type text/plain; server { listen 127.0.0.1:8098; root .; }' > nginx.conf
      head -c 60000 text > page ;;
    java) javac Maps.java ;;
    list | locks) g++ -O2 -g -pthread -o "$1" "$1.cpp" ;;
    cc1plus) for i in $(seq 150); do echo "#include <map>
#include <string>
struct k$i { int a; bool operator<(const k$i& o) const { return a < o.a; } };
std::map<k$i, std::string> f$i(int n) { std::map<k$i, std::string> m; for (int i = 0; i < n; ++i) m[{i}] += \"x\"; return m; }"
      done > all.cpp && g++ -E all.cpp -o all.ii && mv all.ii all.cpp ;;
    git) git -c init.defaultBranch=main init -q . && split -l 2000 text part- && git add -A &&
      git -c user.name=a -c user.email=a@b commit -qm all ;;
  esac
}
names=("$@")
[[ $# -gt 0 ]] || mapfile -t names < <(printf '%s\n' "${!command[@]}" | sort)
for name in "${names[@]}"; do
  prepare "$name" > /dev/null 2>&1 || { echo "$name: left out" >&2; continue; }
  words=${command[$name]}
  [[ $words == *'|'* || $words == *'$('* || $words == *"'"* ]] && run=(sh -c "exec $words") || read -ra run <<< "$words"
  [[ $words == *'|'* ]] && run=(sh -c "$words")
  (timeout -s INT -k 20 "$seconds" "$shadowprof" run -q -o profile.json -- "${run[@]}" > /dev/null 2> error) || true
  { echo "\$ shadowprof run -- $words"; grep '^shadowprof:' error || true; echo "\$ shadowprof report | head -$lines"
    "$shadowprof" report profile.json 2>&1 | head -"$lines" || true; } > "$folder/$name.txt"
  rm -f profile.json*
done
