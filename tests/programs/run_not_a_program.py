"""Files that are no program for this machine: status 126 or 127, one line, no profile."""

import os
import struct

from vocabulary import check, profiled, refused, run, same_as_native, scratch, check_one_line


def write(path, content, mode=0o755):
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, mode)


# An ELF header and one loaded segment that begins with the file; the code follows.
def elf32(machine, code):
    load_at, headers = 0x10000, 52 + 32
    size = headers + len(code)
    header = b"\x7fELF\1\1\1" + bytes(9)
    header += struct.pack("<HHIIIIIHHHHHH", 2, machine, 1, load_at + headers, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    return header + struct.pack("<IIIIIIII", 1, 0, load_at, load_at, size, size, 5, 0x1000) + code


def elf64(machine, code):
    load_at, headers = 0x10000, 64 + 56
    size = headers + len(code)
    header = b"\x7fELF\2\1\1" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, load_at + headers, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return header + struct.pack("<IIQQQQQQ", 1, 5, 0, load_at, load_at, size, size, 0x1000) + code


I386, AARCH64 = 3, 183
EXIT_WITH_7 = bytes.fromhex("b801000000 bb07000000 cd80")  # mov eax, 1; mov ebx, 7; int 0x80


def same_or_refused(command):
    """The program runs as without shadowprof, or shadowprof declines in one line."""
    outcome = profiled(command)
    if outcome.status in (126, 127):
        check_one_line(outcome)
        check(outcome.stdout == b"", "stdout is not empty")
        return
    without = run(["sh", "-c", '"$@"', "sh", *command])
    check(outcome.status == without.status, f"{outcome.status}, without shadowprof {without.status}")
    check(outcome.stdout == without.stdout, "stdout differs")


with scratch():
    refused(["./nothing-here"], 127)
    refused(["no-such-command-anywhere"], 127)

    write("not-executable", b"#!/bin/sh\necho ran\n", 0o644)
    refused(["./not-executable"], 126)

    os.mkdir("folder")
    refused(["./folder"], 126)

    write("cut-off", b"\x7fELF\2\1\1" + bytes(9))
    refused(["./cut-off"], 126)

    write("foreign", elf64(AARCH64, bytes(16)))
    refused(["./foreign"], 126)

    write("interpreter-missing", b"#!/nowhere/at/all\n")
    refused(["./interpreter-missing"], 126, 127)  # shells differ

    # Like a shell, execvp(3) has sh run a text file that does not begin with #!.
    write("text", b"echo from a text file\n")
    same_or_refused(["./text"])

    write("script", b"#!/bin/sh\necho from a script\nexit 3\n")
    same_as_native(["./script"])

    write("old", elf32(I386, EXIT_WITH_7))
    same_or_refused(["./old"])
