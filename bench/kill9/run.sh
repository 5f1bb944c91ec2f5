#!/usr/bin/env bash
# Kills shadowprof in burst mode at random moments, fifty times (ROUNDS) in each way with each
# program, and checks that the programs go on unharmed: tests/programs/burst_killed.py, for longer.
# In a build folder (BUILD, by default build).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${BUILD:-$here/../../build}" && pwd)
targets=(tests/programs/many-threads tests/programs/signals-in-order)
ninja -C "$build" shadowprof "${targets[@]}" >&2
cd "$build"
ROUNDS=${ROUNDS:-50} SHADOWPROF=$build/shadowprof SCHEMA=$here/../../docs/profile.schema.json \
    exec python3 "$here/../../tests/programs/burst_killed.py" "${targets[@]}"
