"""A user may not attach to a program that has more rights than the user has (setuid), and a traced one does not get
them: shadowprof says so in one line, and the program runs on."""

import os
import shutil
import subprocess

from vocabulary import SHADOWPROF, check, check_equal, check_one_line, run, scratch, skip, stop, wait_until

NOBODY = 65534

if os.geteuid() != 0:
    skip("only root can make a program setuid")

with scratch() as folder:
    os.chmod(folder, 0o755)
    sleeper = shutil.copy(shutil.which("sleep"), "sleeper")
    os.chmod(sleeper, 0o4755)
    if os.statvfs(folder).f_flag & os.ST_NOSUID:
        skip("set-user-ID bits have no effect in the temporary folder")
    program = subprocess.Popen([os.path.abspath(sleeper), "600"], user=NOBODY, group=NOBODY, extra_groups=[])
    try:

        def is_privileged():
            with open(f"/proc/{program.pid}/status", encoding="ascii") as file:
                return f"Uid:\t{NOBODY}\t0\t" in file.read()

        wait_until(is_privileged, "the program does not become root's")
        if run(["test", "-x", SHADOWPROF], user=NOBODY, group=NOBODY, extra_groups=[]).status != 0:
            skip("other users cannot reach shadowprof here")
        outcome = run(
            [SHADOWPROF, "attach", "-o", "/dev/null", str(program.pid)],
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
        )
        check_equal("the status", outcome.status, 1)
        check_one_line(outcome)
        line = outcome.own_lines()[0]
        check("root" in line and str(program.pid) in line, f"{line!r} does not tell the remedy")
        check(program.poll() is None, "the program has ended")
        # A program that has long been traced is asked by nobody before it becomes another one.
        with open("becomes", "w", encoding="ascii") as script:
            script.write(f"i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done; exec {folder}/sleeper 0.1\n")
        outcome = run(
            [SHADOWPROF, "run", "-o", "/dev/null", "sh", "becomes"], user=NOBODY, group=NOBODY, extra_groups=[]
        )
        check_equal("the status", outcome.status, 0)
        check(any("privileges" in line for line in outcome.own_lines()), f"nothing is said: {outcome.own_lines()}")
    finally:
        stop(program)
