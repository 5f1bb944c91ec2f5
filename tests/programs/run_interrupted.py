"""Ctrl-C: the terminal sends SIGINT to the program and to shadowprof. The program decides what happens."""

import os
import signal
import subprocess

from vocabulary import check_equal, profile_command, read_profile, scratch


def interrupt(script):
    """What the program prints, and its status, if SIGINT arrives after its first line."""
    process = subprocess.Popen(
        profile_command(["sh", "-c", script]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    first = process.stdout.readline()
    check_equal("the first line", first, b"ready\n")
    os.killpg(process.pid, signal.SIGINT)
    rest = process.stdout.read()
    return rest, process.wait()


LOOP = "while [ ! -e stop ]; do i=$((i + 1)); done"

with scratch():
    rest, status = interrupt(f"trap 'echo caught; exit 9' INT; echo ready; {LOOP}")
    check_equal("what the handler wrote", rest, b"caught\n")
    check_equal("the status", status, 9)
    check_equal("the recorded status", read_profile()["targets"][0]["exit"], 9)

    rest, status = interrupt(f"echo ready; {LOOP}")
    check_equal("the status of a program killed by SIGINT", status, 128 + signal.SIGINT)
    read_profile()

    rest, status = interrupt(
        "trap '' INT; echo ready; i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done; echo finished"
    )
    check_equal("what a program that ignores SIGINT wrote", rest, b"finished\n")
    check_equal("its status", status, 0)
    read_profile()
