#!/usr/bin/env bash
# How long should a burst be? Prints, for each length, what a burst costs and how accurate a profile
# of ten seconds at 1 % would be.
#   bench/cost/sample_size.sh [--seconds N] [TARGET...]
# Uses a build folder (BUILD, by default build). Takes a minute for each target, on an idle machine.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${BUILD:-$here/../../build}" && pwd)
ninja -C "$build" shadowprof bench/cost/spinners >&2
exec python3 "$here/sample_size.py" --build "$build" --scratch /dev/shm "$@"
