#!/usr/bin/env bash
# What does `attach` cost a running program?
#   bench/cost/run.sh [--mode auto|instant|shadow|burst] [--seconds N] [--window S] [--sessions] [--options "..."] [TARGET...]
#   bench/cost/run.sh --moments [--mode auto|instant|shadow|burst] [--seconds N] [--after S] [--options "..."] [TARGET...]
# Measured by windows with and without profiling (measure.py) or, on a machine that is shared, by the progress
# that is lost after each stop (moments.py, which needs root and the numpy of PYTHON, by default python3).
# Uses a build folder (BUILD, by default build). Prints a table, and fails if a 95 % interval reaches beyond
# 1.5 %. Takes two minutes for each target. The machine should be idle.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${BUILD:-$here/../../build}" && pwd)
ninja -C "$build" shadowprof bench/cost/spinners >&2
way=measure
if [[ ${1:-} == --moments ]]; then
  way=moments
  shift
fi
exec "${PYTHON:-python3}" "$here/$way.py" --build "$build" --scratch /dev/shm "$@"
