#!/bin/sh
# Fuzzes what reads hostile input: bench/fuzz/run.sh [SECONDS [TARGET]] (600 and report by default).
#   report      the profile reader and the report
#   symbols     names from ELF files and debug information
#   unwinding   images that are mapped: their headers, notes and unwind tables
# Findings are left in the build folder (FUZZ_BUILD, by default build-fuzz).
set -eu
seconds=${1:-600}
target=${2:-report}
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${FUZZ_BUILD:-$top/build-fuzz}

if [ ! -e "$build/build.ninja" ]; then
    CXX=clang++ meson setup "$build" "$top" -Dfuzzers=true \
        -Db_sanitize=address,undefined -Db_lundef=false \
        -Dcpp_args='-fsanitize=fuzzer-no-link -fno-sanitize-recover=undefined'
fi
ninja -C "$build" "bench/fuzz/fuzz-$target"
corpus=$build/fuzz-corpus-$target
mkdir -p "$corpus"
cd "$build"

seed_report() {
    ninja tests/report/write-sample
    tests/report/write-sample >sample.json
    # One seed for each choice of the first byte: a report and a listing, narrow and wide.
    for first in 001 144 202 344; do
        { printf "\\$first"; cat sample.json; } >"$corpus/sample-$first"
    done
}

# Small libraries, with and without debug information of each version; `$1`: what comes before each.
seed_with_libraries() {
    echo 'struct s { int a; struct s *next; }; enum e { A, B }; static inline int in(int x) { return 3 * x; }
          int f(struct s *p, enum e q, double z) { return in(p->a) + (int)(q + z); }' >seed.c
    for version in 3 4 5; do
        gcc -O2 "-gdwarf-$version" -shared -nostdlib -fPIC -Wl,--build-id,-z,noseparate-code -o seed.so seed.c
        { printf "$1"; cat seed.so; } >"$corpus/debug-$version"
    done
    strip seed.so
    { printf "$1"; cat seed.so; } >"$corpus/stripped"
}

case $target in
    report) seed_report ;;
    symbols) seed_with_libraries '' ;;
    unwinding) seed_with_libraries '\000\020' ;;
esac
dictionary=
[ "$target" != report ] || dictionary=-dict=$top/bench/fuzz/profile.dict
exec "bench/fuzz/fuzz-$target" -max_total_time="$seconds" -max_len=65536 -timeout=20 \
    -rss_limit_mb=2048 $dictionary -print_final_stats=1 "$corpus"
