"""Standard output that cannot be written is an error in one line, for every command that prints; if its
reader has gone away, SIGPIPE ends the command as it ends others. Arguments that are quoted in a message
cannot drive the terminal. `-` is standard input."""

import os
import signal
import subprocess

from vocabulary import SHADOWPROF, check, check_equal, check_one_line, profiled, run, scratch, shell_status

PRINTING = [
    ["--help"],
    ["--version"],
    ["--completion", "bash"],
    ["report", "--help"],
    ["report", "profile.json"],
    ["report", "--function", "*", "profile.json"],
    ["compare", "profile.json", "profile.json"],
    ["compare", "--json", "profile.json", "profile.json"],
    ["diff", "profile.json", "profile.json"],
    ["diff", "--markdown", "profile.json", "profile.json"],
    ["check", "--max-any-function", "+1%", "profile.json", "profile.json"],
    ["export", "--format", "collapsed", "profile.json"],
    ["export", "--format", "pprof", "profile.json"],
    ["doctor"],
]


def with_stdout(arguments, stdout, **more):
    done = subprocess.run([SHADOWPROF, *arguments], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
                          timeout=300, check=False, **more)
    return shell_status(done.returncode), done.stderr.decode(errors="replace")


def nobody_reads():
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def failures():
    for arguments in PRINTING:
        for what, stdout, more, expected in (
            ("a full disk", os.open("/dev/full", os.O_WRONLY), {}, (1, "No space left on device")),
            ("a closed file", None, {"preexec_fn": lambda: os.close(1)}, (1, "Bad file descriptor")),
            ("no reader", nobody_reads(), {}, (128 + signal.SIGPIPE, None)),
            ("no reader and no SIGPIPE", nobody_reads(), {"preexec_fn": lambda: signal.signal(
                signal.SIGPIPE, signal.SIG_IGN)}, (1, "Broken pipe")),
        ):
            status, why = expected
            line = f"shadowprof: cannot write standard output: {why}\n" if why else ""
            check_equal(f"what {arguments} makes of {what}", with_stdout(arguments, stdout, **more), (status, line))
            if stdout is not None:
                os.close(stdout)


def closed_streams():
    """A file that we open does not become a standard stream that was closed; what `run` starts gets it closed."""
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        command = f'"$0" export --format callgrind -o out.callgrind profile.json {closed}'
        check_equal(f"the status of an export with {closed}", run(["sh", "-c", command, SHADOWPROF]).status, 0)
        with open("out.callgrind", encoding="utf-8") as file:
            check(file.read().startswith("# callgrind format"), f"the export with {closed} is something else")
        os.remove("out.callgrind")
        tell = "ls /proc/self/fd | tr '\\n' ' ' >told"
        run(["sh", "-c", f"({tell}) {closed}"])
        with open("told", encoding="utf-8") as file:
            natively = file.read()
        run(["sh", "-c", f'"$0" run -q -m full -o p.json -- sh -c "({tell})" {closed}', SHADOWPROF])
        with open("told", encoding="utf-8") as file:
            check_equal(f"what a program has open with {closed}", file.read(), natively)


def standard_input():
    with open("profile.json", "rb") as file:
        piped = run([SHADOWPROF, "report", "-"], stdin=file)
    check_equal("a report of standard input", piped.stdout, run([SHADOWPROF, "report", "profile.json"]).stdout)


def quoted_arguments():
    evil = "\x1b[31m\nshadowprof: forged\r\x9b1m\u202e"
    for arguments in (
        ["report", evil],
        ["report", "-" + evil],
        ["report", "--function", evil, "profile.json"],
        ["report", "--top", evil, "profile.json"],
        ["report", "--html", "/no/such/" + evil, "profile.json"],
        ["export", "--format", evil, "profile.json"],
        ["export", "--format", "autofdo", "--module", evil, "profile.json"],
        ["diff", evil, evil],
        ["check", "profile.json", "profile.json", "--max-function", evil],
        ["merge", "-o", "m.json", evil],
        ["run", "-m", evil, "true"],
        ["run", "--duration", evil, "true"],
        ["run", "-p", evil, "true"],
        ["run", evil],
        ["run", "-o", "/no/such/" + evil, "true"],
        ["attach", evil],
        [evil],
    ):
        outcome = run([SHADOWPROF, *arguments])
        check(outcome.status not in (0, 139, 134), f"{arguments}: status {outcome.status}")
        check_one_line(outcome)
        said = outcome.stderr.decode()
        check(not any(c in said[:-1] for c in "\x1b\n\r\x9b\u202e"), f"{arguments}: {said!r}")


with scratch():
    profiled(["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done"], "-q", "-m", "full")
    failures()
    closed_streams()
    standard_input()
    quoted_arguments()
