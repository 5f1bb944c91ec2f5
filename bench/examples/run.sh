#!/usr/bin/env bash
# Profiles ordinary programs for some ten seconds each, at the defaults, and keeps what `shadowprof report`
# prints first, unedited:
#   bench/examples/run.sh FOLDER [NAME...]
# With CHECK=1 it runs each once more, under perf, and writes to FOLDER/overlap.md how near the shares of time are
# (overlap.py), and to FOLDER/differences.txt what differs most. Uses the build folder BUILD, by default build.
# Programs that are not installed are left out.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
shadowprof=$(cd "${BUILD:-$root/build}" && pwd)/shadowprof
[[ $# -ge 1 ]] || { sed -n '2,8s/^# \?//p' "$0" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
seconds=10
lines=60
pg=$(printf '%s\n' /usr/lib/postgresql/*/bin | tail -1)
export pg

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
cat > join.cpp <<'S'
// Joins 20 million rows with a hash table of 2 million.
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>
struct Row { long key, amount; };
int main() {
    std::mt19937_64 random(1);
    std::unordered_map<long, std::string> names;
    for (long i = 0; i < 2000000; ++i) names.emplace(i * 2654435761 % 4000037, "name" + std::to_string(i));
    std::vector<Row> rows(1000000);
    for (auto& row : rows) row = {static_cast<long>(random() % 4000037), static_cast<long>(random() % 100)};
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(12);
    std::size_t sum = 0;
    while (std::chrono::steady_clock::now() < end)
        for (const auto& row : rows)
            if (const auto found = names.find(row.key); found != names.end())
                sum += found->second.size() * static_cast<std::size_t>(row.amount);
    std::printf("%d\n", sum == 1);
}
S
cat > json.cpp <<'S'
// Reads JSON into a tree of values, again and again.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>
struct Value {
    std::string text;
    double number = 0;
    std::vector<Value> items;
    std::map<std::string, Value> members;
};
class Parser {
  public:
    explicit Parser(const std::string& text) : at_(text.c_str()) {}
    Value value() {
        Value result;
        skip();
        if (*at_ == '{') {
            do { ++at_; skip(); auto name = string(); skip(); ++at_; result.members[name] = value(); skip(); } while (*at_ == ',');
            ++at_;
        } else if (*at_ == '[') {
            do { ++at_; result.items.push_back(value()); skip(); } while (*at_ == ',');
            ++at_;
        } else if (*at_ == '"') {
            result.text = string();
        } else {
            char* end = nullptr;
            result.number = std::strtod(at_, &end);
            at_ = end;
        }
        return result;
    }
  private:
    void skip() { while (*at_ == ' ' || *at_ == '\n') ++at_; }
    std::string string() {
        std::string result;
        for (++at_; *at_ != '"'; ++at_) result += *at_;
        ++at_;
        return result;
    }
    const char* at_;
};
int main() {
    std::string text = "[";
    for (int i = 0; i < 2000; ++i)
        text += (i ? ",\n" : "") + std::string("{\"id\": ") + std::to_string(i) + ", \"name\": \"customer number " + std::to_string(i * 7) +
                "\", \"amounts\": [1.5, 22.25, " + std::to_string(i * 0.37) + "], \"address\": {\"city\": \"Rome\", \"zip\": \"00100\"}}";
    text += "]";
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(12);
    std::size_t sum = 0;
    while (std::chrono::steady_clock::now() < end) sum += Parser(text).value().items.size();
    std::printf("%d\n", sum == 1);
}
S
cat > sharing.cpp <<'S'
// Two threads count in neighbouring words of one cache line, and now and then add up under a mutex.
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>
struct Counters { unsigned long hits = 0, misses = 0; };
static Counters counters;
static std::mutex mutex;
static unsigned long total;
static void count(unsigned long& mine, unsigned seed) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(12);
    while (std::chrono::steady_clock::now() < end) {
        for (int i = 0; i < 100000; ++i) {
            seed = seed * 1664525 + 1013904223;
            __atomic_store_n(&mine, __atomic_load_n(&mine, __ATOMIC_RELAXED) + (seed >> 31), __ATOMIC_RELAXED);
        }
        const std::lock_guard lock(mutex);
        total += mine;
    }
}
int main() {
    std::thread one([] { count(counters.hits, 1); }), other([] { count(counters.misses, 2); });
    one.join();
    other.join();
    std::printf("%d\n", total == 1);
}
S
cat > primes.go <<'S'
package main

import (
	"fmt"
	"sort"
	"strings"
	"time"
)

func words(n int) map[string]int {
	counts := map[string]int{}
	for i := 0; i < n; i++ {
		counts[fmt.Sprintf("w%d", i*7919%10007)] += len(strings.Repeat("x", i%13))
	}
	return counts
}

func main() {
	end := time.Now().Add(12 * time.Second)
	n := 0
	for time.Now().Before(end) {
		counts := words(50000)
		keys := make([]string, 0, len(counts))
		for key := range counts {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		n += len(keys)
	}
	fmt.Println(n > 0)
}
S
cat > groups.rs <<'S'
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

fn group(lines: &[String]) -> BTreeMap<usize, Vec<&str>> {
    let mut groups: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for line in lines {
        for word in line.split(' ') {
            groups.entry(word.len()).or_default().push(word);
        }
    }
    groups
}

fn main() {
    let end = Instant::now() + Duration::from_secs(12);
    let lines: Vec<String> = (0..20000u64).map(|i| format!("{} {} {}", i * 7919 % 10007, i * i, "x".repeat((i % 17) as usize))).collect();
    let mut n = 0;
    while Instant::now() < end {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for (_, mut words) in group(&lines) {
            words.sort();
            for word in words {
                *counts.entry(word).or_insert(0) += 1;
            }
        }
        n += counts.len();
    }
    println!("{}", n > 0);
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
  [java]='java Maps' [java-names]='java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit Maps' [cc1plus]="\$(g++ -print-prog-name=cc1plus) -quiet -O2 all.cpp -o /dev/null"
  [demo]='./spheres 2500' [planted]='./planted 45000000' [join]='./join' [json]='./json' [sharing]='./sharing'
  [go]='./primes' [rust]='./groups' [list]='./list' [locks]='./locks' [pipeline]='sort -r text | uniq -c | sort -n | tail -1'
  [dd]='dd if=/dev/zero of=/dev/null bs=4k count=30000000' [sleep]='sleep 3' [git]='git fsck --full' [sort]='sort --parallel=2 text text'
  [make]='make -s -j2' [ffmpeg]='ffmpeg -loglevel error -f lavfi -i testsrc2=size=1280x720:rate=30 -t 60 -c:v libx264 -f null -'
  [postgres]='setpriv --reuid postgres --regid postgres --clear-groups $pg/postgres -D $PWD/pg/data -p 6398 -k $PWD/pg & sleep 1; $pg/pgbench -h 127.0.0.1 -p 6398 -U bench -n -c2 -T9 postgres | cat; kill -INT $!'
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
    java-names) sed -i 's/12000/9000/' Maps.java && javac Maps.java ;;
    list | locks | join | json | sharing) g++ -O2 -g -pthread -o "$1" "$1.cpp" ;;
    demo) g++ -O2 -g -o spheres "$root/bench/demo/spheres.cpp" ;;
    planted) gcc -O2 -g -o planted "$root/tests/opportunities/planted.c" ;;
    go) go build primes.go ;;
    rust) rustc -O -g groups.rs ;;
    postgres) mkdir pg && chmod 755 . && chown postgres pg && (as_postgres=(setpriv --reuid postgres --regid postgres --clear-groups)
      set -e
      "${as_postgres[@]}" "$pg/initdb" -A trust -U bench -D "$PWD/pg/data"
      "${as_postgres[@]}" "$pg/pg_ctl" -D "$PWD/pg/data" -o "-p 6398 -k $PWD/pg" -l pg/log -w start
      "$pg/pgbench" -h 127.0.0.1 -p 6398 -U bench -i -s 5 -q postgres
      "${as_postgres[@]}" "$pg/pg_ctl" -D "$PWD/pg/data" -m fast stop) ;;
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
  [[ -z ${CHECK:-} ]] ||
    "$root/bench/examples/overlap.py" --row "$name" "$shadowprof" "${run[@]}" 2>> "$folder/differences.txt" >> "$folder/overlap.md" || true
done
