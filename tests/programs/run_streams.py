"""stdin, stdout and stderr are the program's. shadowprof prints on stderr only."""

import os
import select
import signal
import subprocess

from vocabulary import check, check_equal, profile_command, profiled, run, same_as_native, scratch

with scratch():
    with open("input", "wb") as file:
        file.write(bytes(range(256)) * 300)
    outcomes = []
    for runner in (run, profiled):
        with open("input", "rb") as file:
            outcomes.append(runner(["cat"], stdin=file))
    check_equal("what cat wrote", outcomes[1].stdout, outcomes[0].stdout)

    # If the reader goes away, SIGPIPE ends the program, not shadowprof.
    writer = subprocess.Popen(
        profile_command(["sh", "-c", "while echo y; do :; done"]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    writer.stdout.readline()
    writer.stdout.close()
    writer.stderr.read()
    check_equal("the status of a broken pipe", writer.wait(), 128 + 13)

    # A reader sees the end of the stream when the program closes it, not when the profile is written.
    writer = subprocess.Popen(
        profile_command(["sh", "-c", "echo $$; read line; exec sleep 300 >&-"]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    program = int(writer.stdout.readline())
    writer.stdin.write(b"go on\n")
    writer.stdin.close()
    readable, _, _ = select.select([writer.stdout], [], [], 60)
    check(readable and writer.stdout.read() == b"", "the pipe is still open")
    os.kill(program, signal.SIGTERM)
    writer.stderr.read()
    check_equal("the status of a program ended by SIGTERM", writer.wait(), 128 + signal.SIGTERM)

    outcome = profiled(["sh", "-c", "echo mine; echo yours >&2"])
    check_equal("stdout", outcome.stdout, b"mine\n")
    check(b"yours\n" in outcome.stderr, "the program's stderr is lost")
    outcome = profiled(["sh", "-c", "echo yours >&2"], "--quiet")
    check_equal("stderr of a quiet run", outcome.stderr, b"yours\n")

    # Options of the program are not shadowprof's.
    same_as_native(["echo", "--mode", "-o", "--", "--help"])
