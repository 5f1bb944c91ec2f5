#!/usr/bin/env bash
# Do the interpreter and the stepper agree on real programs?
#   bench/equivalence/run.sh [BURSTS [INSTRUCTIONS [PROGRAM...]]]     by default 200 and 2000, all
# In a build folder (BUILD, by default build). Prints a table; what differed is shown above it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${BUILD:-$here/../../build}" && pwd)
. "$here/programs.sh"
bursts=${1:-200} instructions=${2:-2000}
[ $# -le 2 ] || programs=("${@:3}")

ninja -C "$build" tests/equivalence/engines-agree bench/equivalence/throwing >&2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
make_inputs "$scratch"

failed=0
row='%-18s%8s%14s%14s%9s%7s%13s\n'
table=$(printf "$row" program bursts instructions values skipped cut differences)
for program in "${programs[@]}"; do
    command_of "$program"
    status=0
    "$build/tests/equivalence/engines-agree" --bursts "$bursts" --instructions "$instructions" \
        -- "${command[@]}" >/dev/null 2>"$scratch/said" </dev/null || status=$?
    [ $status = 0 ] || failed=1
    sed -n '/^difference/,/^$/p; /^skipped/p; /^cut short/p' "$scratch/said" |
        sed "s/^/$program: /"
    # The program may have written to the same line.
    read -r b _ i _ v _ _ s _ c _ _ d _ < <(grep -o '[0-9]* bursts, [0-9]* instructions.*' \
        "$scratch/said" || tail -n 1 "$scratch/said")
    table+=$'\n'$(printf "$row" "$program" "$b" "$i" "$v" "$s" "$c" "$d")
done
printf '%s\n' "$table"
exit $failed
