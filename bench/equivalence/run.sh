#!/usr/bin/env bash
# Do the engines agree on real programs?
#   bench/equivalence/run.sh [--engine ENGINE] [BURSTS [INSTRUCTIONS [PROGRAM...]]]
# Compares the interpreter with ENGINE, in BURSTS (200) of INSTRUCTIONS, on all programs or those named:
#   stepper          the CPU, single-stepped; 2000 instructions (the default)
#   translator       the code cache with every value captured; 100000 instructions, across system calls
#   translator-lean  the code cache without values, with units that follow the program
# Uses a build folder (BUILD, by default build). Prints differences and then a table. Its columns are: how many
# bursts had the full length, the system calls in them, how often only the CPU executed because nothing can be
# equal (clocks), and bursts that were skipped or ended early.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${BUILD:-$here/../../build}" && pwd)
. "$here/programs.sh"
engine=stepper
if [ "${1:-}" = --engine ]; then
    engine=$2
    shift 2
fi
instructions=100000
[ "$engine" != stepper ] || instructions=2000
bursts=${1:-200} instructions=${2:-$instructions}
[ $# -le 2 ] || programs=("${@:3}")

ninja -C "$build" tests/equivalence/engines-agree bench/equivalence/throwing >&2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
make_inputs "$scratch"

failed=0
row='%-18s%8s%8s%14s%14s%8s%8s%9s%7s%13s\n'
table=$(printf "$row" program bursts whole instructions values calls clocks skipped cut differences)
for program in "${programs[@]}"; do
    command_of "$program"
    status=0
    "$build/tests/equivalence/engines-agree" --engine "$engine" --bursts "$bursts" \
        --instructions "$instructions" -- "${command[@]}" >/dev/null 2>"$scratch/said" </dev/null ||
        status=$?
    [ $status = 0 ] || failed=1
    sed -n '/^difference/,/^$/p; /^skipped/p; /^cut short/p' "$scratch/said" |
        sed "s/^/$program: /"
    # The program may have written to the same line.
    read -r b _ w _ i _ v _ c _ e _ s _ x _ d _ < <(grep -o '[0-9]* bursts, [0-9]* whole.*' \
        "$scratch/said" || tail -n 1 "$scratch/said")
    table+=$'\n'$(printf "$row" "$program" "$b" "$w" "$i" "$v" "$c" "$e" "$s" "$x" "$d")
done
printf '%s\n' "$table"
exit $failed
