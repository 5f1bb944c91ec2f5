#!/usr/bin/env bash
# Why do bursts end? Attaches in mode burst, as often as possible, to real programs under load.
#   bench/bursts/run.sh [BURSTS [SECONDS [PROGRAM...]]]    by default 20000 in all, visits of 15 s
# Uses a build folder (BUILD, by default build). Prints how the bursts of each program ended. Fails if a
# burst did not end by reaching its length, by a system call, or by the end of the thread.
# Besides the programs themselves it needs: redis-server, redis-tools, nodejs.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${BUILD:-$here/../../build}" && pwd)
. "$here/../equivalence/programs.sh"
wanted=${1:-20000} seconds=${2:-15}
programs+=(redis-server nodejs)
[ $# -le 2 ] || programs=("${@:3}")

ninja -C "$build" shadowprof bench/equivalence/throwing >&2
shadowprof=$build/shadowprof
scratch=$(mktemp -d)
target= load=
end_program() {
    for process in $load $target; do
        kill -KILL "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
    target= load=
}
trap 'end_program; rm -rf "$scratch"' EXIT
make_inputs "$scratch"
cat >"$scratch/work.js" <<'JS'
function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
for (let round = 0; ; round++) {
    const text = JSON.stringify(Array.from({ length: 200 }, (_, i) => ({ i, s: 'x'.repeat(i % 9), f: i / 7 })));
    const words = new Map(JSON.parse(text).map(o => [o.s + o.i, Math.sin(o.f)]));
    const sorted = [...words.keys()].sort().map(w => w.replace(/x+/g, m => m.length));
    new Function('a', 'return a.length + ' + round)(sorted);
    fibonacci(18);
    try { null[sorted[0]]; } catch (error) { error.stack; }
}
JS

start() {
    case $1 in
        redis-server)
            redis-server --port 0 --unixsocket "$scratch/redis" --save '' --appendonly no \
                --dir "$scratch" >/dev/null 2>&1 &
            target=$!
            while [ ! -S "$scratch/redis" ]; do sleep 0.1; done
            redis-benchmark -s "$scratch/redis" -l -q -c 20 -P 8 -n 1000000 -r 10000 \
                -t set,get,incr,lpush,lrange_100,zadd,hset,mset >/dev/null 2>&1 &
            load=$!
            ;;
        nodejs)
            nodejs "$scratch/work.js" &
            target=$!
            ;;
        *)
            command_of "$1"
            "${command[@]}" >/dev/null 2>&1 </dev/null &
            target=$!
            ;;
    esac
    sleep 0.5
}

round=0
while :; do
    for program in "${programs[@]}"; do
        start "$program"
        "$shadowprof" attach -q -m burst --limit 10 --period 2ms --overhead 100% \
            --duration "${seconds}s" --seed $((round + 1)) \
            -o "$scratch/$program.$round.json" "$target"
        end_program
    done
    status=0
    "$here/table.py" "$wanted" "$scratch"/*.[0-9]*.json || status=$?
    [ $status = 3 ] || exit $status
    round=$((round + 1))
done
