#!/bin/sh
# Fuzzes the profile reader and the report: bench/fuzz/run.sh [SECONDS] (600 by default).
# Findings are left in the build folder (FUZZ_BUILD, by default build-fuzz).
set -eu
seconds=${1:-600}
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${FUZZ_BUILD:-$top/build-fuzz}

if [ ! -e "$build/build.ninja" ]; then
    CXX=clang++ meson setup "$build" "$top" -Dfuzzers=true \
        -Db_sanitize=address,undefined -Db_lundef=false \
        -Dcpp_args='-fsanitize=fuzzer-no-link -fno-sanitize-recover=undefined'
fi
ninja -C "$build" bench/fuzz/fuzz-report tests/report/write-sample

# One seed for each choice of the first byte: a report and a listing, narrow and wide.
corpus=$build/fuzz-corpus
mkdir -p "$corpus"
"$build/tests/report/write-sample" "$build/sample.json"
for first in 001 144 202 344; do
    { printf "\\$first"; cat "$build/sample.json"; } >"$corpus/sample-$first"
done
cd "$build"
exec bench/fuzz/fuzz-report -max_total_time="$seconds" -max_len=65536 -timeout=20 \
    -rss_limit_mb=2048 -dict="$top/bench/fuzz/profile.dict" -print_final_stats=1 "$corpus"
