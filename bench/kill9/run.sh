#!/usr/bin/env bash
# Kills shadowprof in burst mode at random moments, fifty times (ROUNDS) in each way with each
# program, and checks that the programs go on unharmed: tests/programs/burst_killed.py, for longer,
# and servers.py. Needs redis-server, redis-tools and nodejs.
# In a build folder (BUILD, by default build).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${BUILD:-$here/../../build}" && pwd)
targets=(tests/programs/many-threads tests/programs/signals-in-order)
spinners=bench/cost/spinners
ninja -C "$build" shadowprof "${targets[@]}" $spinners >&2
cd "$build"
export ROUNDS=${ROUNDS:-50} SHADOWPROF=$build/shadowprof SCHEMA=$here/../../docs/profile.schema.json
python3 "$here/../../tests/programs/burst_killed.py" "${targets[@]}"
python3 "$here/servers.py" $spinners
