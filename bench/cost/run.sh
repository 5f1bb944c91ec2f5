#!/usr/bin/env bash
# What does `attach` cost a running program?
#   bench/cost/run.sh [--mode shadow|burst] [--seconds N] [--window S] [--sessions] [--options "..."] [TARGET...]
# In a build folder (BUILD, by default build). Prints a table, and fails if a 95 % interval reaches
# beyond 1.5 %. Takes 90 s a target; the machine should have nothing else to do.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${BUILD:-$here/../../build}" && pwd)
ninja -C "$build" shadowprof bench/cost/spinners >&2
exec python3 "$here/measure.py" --build "$build" --scratch /dev/shm "$@"
