#!/usr/bin/env bash
# The time that a program stands still while a replica of it is forked, as the program sees it, beside
# its own fork(2): for programs of 10 MB to 4 GB, with huge pages and without, launched and attached
# to. Arguments: as fork-bench's. In a build folder (BUILD, by default build); with nothing else
# running.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${BUILD:-$here/../../build}" && pwd)
ninja -C "$build" bench/fork/fork-bench >&2
exec "$build/bench/fork/fork-bench" "$@"
