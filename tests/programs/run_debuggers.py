"""Programs that trace others themselves, strace and gdb, do under shadowprof what they do without it."""

import re
import shutil

from vocabulary import check, check_equal, profiled, read_profile, run, scratch, skip

COMMANDS = {
    "strace": ["strace", "-f", "-o", "calls", "-e", "trace=execve,exit_group", "-e", "signal=none"]
    + ["sh", "-c", "/bin/echo one; /bin/echo two >&2; exit 3"],
    "gdb": ["gdb", "-nx", "-batch", "-ex", "set confirm off", "-ex", "break main", "-ex", "run"]
    + ["-ex", "next", "-ex", "info registers rip", "-ex", "continue"]
    + ["--args", "sh", "-c", "/bin/echo one; exit 3"],
}
present = {name: command for name, command in COMMANDS.items() if shutil.which(name)}
if not present:
    skip("neither strace nor gdb is installed")


def without_numbers(output):
    """Process ids differ."""
    return re.sub(rb"\b\d{2,}\b", b"N", output)


def calls():
    with open("calls", "rb") as file:
        return sorted(re.sub(rb"^\d+ +|0x[0-9a-f]+|/\* .* \*/", b"", line) for line in file)


with scratch():
    for name, command in present.items():
        native = run(command)
        traced = calls() if name == "strace" else []
        check(b"one" in native.stdout, f"{name} does not work here: {native.stdout} {native.stderr}")
        for mode in "shadow", "burst", "full":
            outcome = profiled(command, "-q", "--mode", mode)
            what = f"{name} in mode {mode}"
            check_equal(f"the status of {what}", outcome.status, native.status)
            check_equal(f"the output of {what}", *map(without_numbers, (outcome.stdout, native.stdout)))
            check_equal(f"stderr of {what}", *map(without_numbers, (outcome.stderr, native.stderr)))
            if name == "strace":
                check_equal(f"what {what} saw", calls(), traced)
            check_equal(f"the program of {what}", read_profile()["targets"][0]["exit"], native.status)
