"""Programs that own the terminal, vim and top: they draw, take keys and end as they do without shadowprof, and leave
the terminal as it was."""

import os
import pty
import select
import shutil
import termios
import time

from vocabulary import SHADOWPROF, check, check_equal, read_profile, scratch, skip

PATIENCE = 120
present = [name for name in ("vim", "top") if shutil.which(name)]
if not present:
    skip("neither vim nor top is installed")


def on_terminal(command, steps):
    """Types each text when the one before it has appeared and nothing more comes: vim asks the terminal for this and
    that when it starts. To what was typed meanwhile it did not answer in one run of thirty in mode full, for a reason
    that is not known. Returns the exit status, and whether the terminal's settings are what they were."""
    pid, master = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execvp(command[0], command)
    before, seen, steps = termios.tcgetattr(master), b"", list(steps)
    deadline = time.monotonic() + PATIENCE
    while True:
        check(time.monotonic() < deadline, f"{command}: waited for {steps}, saw {seen[-500:]}")
        is_quiet = not select.select([master], [], [], 0.3)[0]
        if steps and steps[0][0] in seen and is_quiet:
            os.write(master, steps.pop(0)[1])
            seen = b""
        if not is_quiet:
            try:
                seen += os.read(master, 65536)
            except OSError:  # the other end is closed
                break
        if not steps and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            break
    _, status = os.waitpid(pid, 0)
    after = termios.tcgetattr(master)
    os.close(master)
    return os.waitstatus_to_exitcode(status), after == before


KEYS = {
    "vim": (["vim", "-u", "NONE", "-i", "NONE", "-N", "text"], [(b"text", b"ihello\x1b:wq\r")]),
    "top": (["top", "-d", "1"], [(b"load average", b"q")]),
}
with scratch():
    for name in present:
        command, steps = KEYS[name]
        for mode in "shadow", "burst", "full":
            if os.path.exists("text"):
                os.unlink("text")
            run = [SHADOWPROF, "run", "-q", "-m", mode, "-o", "profile.json", "--"]
            ended = on_terminal(run + command, steps)
            check_equal(f"how {name} ended in mode {mode}", ended, (0, True))
            if name == "vim":
                with open("text", encoding="ascii") as file:
                    check_equal("what was written", file.read(), "hello\n")
            check_equal("the status in the profile", read_profile()["targets"][0]["exit"], 0)
