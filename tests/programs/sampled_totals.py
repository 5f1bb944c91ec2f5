"""Counts of sampled profiles are estimates of what the whole run executed: of a program that computes, whose samples
are as long as they were meant to be or not, and of one that is in the kernel most of the time."""

import os
import sys
import time

from vocabulary import check, profiled, read_profile, run, scratch

PROGRAM = os.path.abspath(sys.argv[1])
SECONDS = 3
# Code is slower in samples than it is natively; by how much is known roughly.
LEAST, MOST = 0.1, 5


def instructions(command, *options):
    profiled(command, *options)
    return read_profile()["coverage"]


def executed(command):
    return instructions(command, "-m", "full", "-p", "edge")["instructions"]


def in_time(command_for, count):
    """So many rounds that the program takes some seconds."""
    began = time.monotonic()
    run(command_for(count))
    return int(count * SECONDS / (time.monotonic() - began))


def check_total(command_for, first, modes):
    """What the program executes is linear in its rounds."""
    rounds = in_time(command_for, first)
    few, many = executed(command_for(first // 10)), executed(command_for(first // 5))
    truth = few + (many - few) / (first // 10) * (rounds - first // 10)
    for mode in modes:
        seen = instructions(command_for(rounds), "-m", mode, "--overhead", "5%")
        ratio = seen["weighted_instructions"] / truth
        print(f"{command_for(rounds)} in mode {mode}: {seen['samples']} samples, {ratio:.2f} of the truth")
        check(seen["samples"] < 8 or LEAST < ratio < MOST, f"mode {mode} says {ratio:.2f} times the truth")


with scratch():
    check_total(lambda rounds: [PROGRAM, str(rounds)], 100_000_000, ("instant", "shadow"))
    check_total(lambda rounds: ["dd", "if=/dev/zero", "of=/dev/null", "bs=4k", f"count={rounds}"], 500_000, ("instant",))
