"""What people type wrong is told in one line with its remedy, and nothing is lost without a word.

    mistakes.py SHADOWPROF"""

import atexit
import os
import pty
import shutil
import subprocess
import sys
import tempfile

SHADOWPROF = os.path.abspath(sys.argv[1])


def check(condition, otherwise):
    if not condition:
        sys.exit(f"FAILED: {otherwise}")


def run(*arguments):
    return subprocess.run([SHADOWPROF, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def refused(arguments, status, *words):
    outcome = run(*arguments)
    check(outcome.returncode == status, f"{arguments}: status {outcome.returncode}, {outcome.stderr}")
    check(outcome.stderr.count("\n") == 1 and len(outcome.stderr) < 250, f"{arguments}: {outcome.stderr}")
    for word in words:
        check(word in outcome.stderr, f"{arguments}: no {word!r} in {outcome.stderr}")


def read_a_terminal(*arguments):
    """What a terminal shows to which the command writes both its output and its messages."""
    child, terminal = pty.fork()
    if child == 0:
        os.execv(SHADOWPROF, [SHADOWPROF, *arguments])
    seen = b""
    try:
        while more := os.read(terminal, 4096):
            seen += more
    except OSError:
        pass
    os.waitpid(child, 0)
    return seen


folder = tempfile.mkdtemp(prefix="shadowprof-test-")
atexit.register(shutil.rmtree, folder)
os.chdir(folder)
refused(["runn", "true"], 2, "there is no command runn; do you mean run?")
refused(["./prog"], 2, "shadowprof run ./prog")
refused(["attach", "abc"], 2, "'abc' is not the id of a process")
refused(["attach", "-o", "x", "--", "-5"], 2, "'-5' is not the id of a process")
refused(["report", "--top", "-3", "x"], 2, "'-3' is not a count")
refused(["compare", "--top", "-3", "x", "y"], 2, "'-3' is not a count")
refused(["run", "--sample-size", "0", "true"], 125, "--sample-size 0 is for --mode step", "--mode full")
refused(["run", "--sample-size", "2ms", "true"], 125, "--sample-size is a time only with --mode instant")
refused(["run", "-m", "instant", "--sample-size", "0s", "true"], 125, "'0s' is no time")
refused(["run", "--rules", "/dev/zero", "true"], 125, "cannot read /dev/zero: neither a file nor a pipe")
os.mkfifo("pipe.so")
refused(["run", "--module", "./pipe.so", "true"], 125, "--module ./pipe.so: it is no file")
refused(["run", "--all-threads", "true"], 125, "--all-threads is for --mode instant")
refused(["run", "-m", "instant", "--replica-threads", "true"], 125, "--replica-threads is for --mode auto or shadow")

# An option that takes a list takes one word, not the program.
outcome = run("run", "-q", "-m", "full", "-p", "edge", "sh", "-c", "exit 3")
check(outcome.returncode == 3, f"-p and a program: {outcome.returncode}, {outcome.stderr}")

# The profile that was there stays, under another name.
with open("shadowprof.json", encoding="utf-8") as file:
    first = file.read()
run("run", "-q", "-m", "full", "-p", "edge", "true")
with open("shadowprof.json.old", encoding="utf-8") as file:
    check(file.read() == first, "the old profile is another")
with open("shadowprof.json", encoding="utf-8") as file:
    check(file.read() != first, "the new profile is the old one")
run("run", "-q", "-m", "full", "-p", "edge", "-o", "/dev/null", "true")
check(not os.path.exists("/dev/null.old"), "a device was kept")

# A line that is written over would mix with what the program prints.
seen = read_a_terminal("run", "-m", "burst", "sh", "-c", "sleep 0.8; echo said")
check(b"said" in seen and b"\x1b[K" not in seen, f"the terminal shows {seen!r}")
check(b"too few samples" in seen or b"nothing was seen" in seen, f"the terminal shows {seen!r}")
