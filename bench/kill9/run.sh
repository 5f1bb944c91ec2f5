#!/usr/bin/env bash
# Kills shadowprof in the modes burst and shadow (MODES) at random moments, fifty times (ROUNDS) in
# each way with each program, and checks that the programs go on unharmed:
# tests/programs/burst_killed.py, for longer, and servers.py. Then kills a profiler that forks replicas
# at every one of its ptrace requests, and shadowprof at random ones, beside programs that sleep:
# tests/inject/births_killed.py. PROGRAMS names those that burst_killed.py is to use. Needs redis-server,
# redis-tools and nodejs.
# Uses a build folder (BUILD, by default build).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${BUILD:-$here/../../build}" && pwd)
profiler=tests/inject/birth-profiler
programs=(tests/inject/birth-target tests/inject/birth-sleepers)
killers=(tests/inject/dies-at-request.so tests/inject/kill-at-request)
targets=(tests/programs/many-threads tests/programs/signals-in-order tests/programs/new-code)
spinners=bench/cost/spinners
ninja -C "$build" shadowprof "${targets[@]}" $profiler "${programs[@]}" "${killers[@]}" $spinners >&2
cd "$build"
export ROUNDS=${ROUNDS:-50} SHADOWPROF=$build/shadowprof SCHEMA=$here/../../docs/profile.schema.json
for MODE in ${MODES:-burst shadow}; do
  export MODE
  python3 "$here/../../tests/programs/burst_killed.py" "${targets[@]}"
  python3 "$here/servers.py" $spinners
done
export PART=${PART:-1}
python3 "$here/../../tests/inject/births_killed.py" $profiler "${killers[0]}" "${programs[@]}" shadowprof
# Of what this one does, a part has been seen to hold: docs/rooms/inject.md.
python3 "$here/../../tests/inject/births_killed.py" $profiler "${killers[1]}" "${programs[@]}"
