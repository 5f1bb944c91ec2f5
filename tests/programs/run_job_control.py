"""Ctrl-Z and fg in an interactive shell: the program and shadowprof stop as one job, and go on."""

import os
import pty
import re
import select
import signal
import sys
import time

from vocabulary import SHADOWPROF, check, read_profile, scratch, state_of, wait_until


class Terminal:
    """An interactive shell behind a pseudo-terminal."""

    def __init__(self):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.environ["PS1"] = "prompt> "
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
        self.seen = ""

    def type(self, text):
        os.write(self.master, text.encode())

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            self.seen += os.read(self.master, 4096).decode(errors="replace")

    def expect(self, pattern, seconds=60):
        """Reads until the pattern appears, and discards everything up to it."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.seen)):
            check(time.monotonic() < deadline, f"waited for {pattern!r}, saw {self.seen[-2000:]!r}")
            self.read(0.1)
        self.seen = self.seen[found.end() :]
        return found

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.master)
        os.waitpid(self.pid, 0)


def last_tick(path):
    with open(path, encoding="ascii") as file:
        return file.read().count("\n")


TICKER = "echo pid $$; i=0; while [ ! -e stop ]; do i=$((i + 1)); [ $((i % 5000)) = 0 ] && echo tick >> ticks; done; exit 5"

# Signals come to this one so often that it is let go of between samples.
TRAPPING_TICKER = """
import os, signal, sys
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
print("pid", os.getpid(), flush=True)
i = 0
while not os.path.exists("stop"):
    i += 1
    if i % 20000 == 0:
        with open("ticks", "a") as ticks:
            ticks.write("tick\\n")
signal.setitimer(signal.ITIMER_REAL, 0)
sys.exit(5)
"""


def stop_and_go_on(interpreter, ticker):
    with open("ticks", "w", encoding="ascii"):
        pass
    with open("ticker", "w", encoding="ascii") as script:
        script.write(ticker)
    terminal = Terminal()
    terminal.expect("prompt> ")
    terminal.type(f"{SHADOWPROF} run --no-progress -o profile.json -- {interpreter} ticker\n")
    program = int(terminal.expect(r"pid (\d+)")[1])
    wait_until(lambda: last_tick("ticks") >= 3, "for the program to run")

    for _ in range(3):
        terminal.type("\x1a")
        terminal.expect("Stopped")
        wait_until(lambda: state_of(program) in "tT", "for the program to stop")
        before = last_tick("ticks")
        time.sleep(0.5)
        check(last_tick("ticks") == before, "the program runs on while it is stopped")
        terminal.type("fg\n")
        wait_until(lambda: last_tick("ticks") > before + 2, "for the program to go on")

    with open("stop", "w", encoding="ascii"):
        pass
    terminal.expect("prompt> ")
    terminal.type("echo status $?\n")
    status = terminal.expect(r"status (\d+)\r")[1]
    check(status == "5", f"the exit status of {interpreter} is {status}: {terminal.seen}")
    terminal.close()
    profile = read_profile()
    check(profile["targets"][0]["exit"] == 5, "the profile has another exit status")
    os.unlink("stop")
    return profile


with scratch():
    stop_and_go_on("sh", TICKER)
    warnings = stop_and_go_on(sys.executable, TRAPPING_TICKER)["run"]["warnings"]
    check(any("it was let go of" in warning for warning in warnings), f"the profile says only {warnings}")
