"""One thread maps another library where one was, and another thread executes what is there: never what was there before."""

import os
import subprocess
import sys

from vocabulary import check_equal, run, same_as_native, scratch

program = os.path.abspath(sys.argv[1])


def library(number):
    """A whole file that can be mapped as code at once: addresses in it are offsets."""
    with open("number.c", "w", encoding="ascii") as source:
        source.write(f"int number(void) {{ return {number}; }}\n")
    name = f"number{number}.so"
    flags = ["-shared", "-fPIC", "-O1", "-Wl,-z,noseparate-code"]
    subprocess.run(["gcc", *flags, "-o", name, "number.c"], check=True)
    symbols = subprocess.run(["nm", name], capture_output=True, check=True, text=True).stdout
    [place] = [line.split()[0] for line in symbols.splitlines() if line.endswith(" T number")]
    return name, "0x" + place


with scratch():
    (zero, place), (one, other_place) = library(0), library(1)
    check_equal("where the function is", other_place, place)
    command = lambda rounds: [program, str(rounds), place, zero, one]
    check_equal("what it says", run(command(100)).stdout, b"0 wrong\n")
    # Often, so that many samples meet it; and the budget lets no sample pass.
    for mode, rounds in ("instant", 40000), ("auto", 20000), ("full", 300):
        same_as_native(command(rounds), "-m", mode, "--overhead", "30%")
