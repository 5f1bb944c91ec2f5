"""If shadowprof cannot get a thread, a file or memory, then either the program does not start, and the
status says so, or the program ends as it does without us."""

import os
import resource
import shutil
import subprocess

from vocabulary import SHADOWPROF, check, check_equal, scratch, shell_status

# Long enough to be sampled in each mode.
PROGRAM = ["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; echo computed; exit 7"]
NOBODY = 65534


def tasks_of(user):
    """How many processes and threads this user has, which is what RLIMIT_NPROC counts."""
    tasks = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{pid}").st_uid == user:
                tasks += len(os.listdir(f"/proc/{pid}/task"))
        except OSError:
            pass
    return tasks


def limited(mode, which, most, user=None):
    """How the program ended, and what shadowprof printed."""

    def before():
        resource.setrlimit(which, (most, most))
        if user is not None:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)

    done = subprocess.run(
        ["./shadowprof", "run", "-m", mode, "--overhead", "20%", "-o", "profile.json", "--", *PROGRAM],
        capture_output=True,
        check=False,
        preexec_fn=before,
        timeout=120,
    )
    return shell_status(done.returncode), done.stdout, done.stderr.decode(errors="replace")


def check_limits(mode, what, which, limits, user=None):
    """The program runs at least under the last of these limits."""
    ran = False
    for most in limits:
        status, stdout, said = limited(mode, which, most, user)
        case = f"{mode}, {what} {most}: {said}"
        ran = (status, stdout) == (7, b"computed\n")
        if not ran:
            check_equal(f"the status ({case})", (status, stdout), (125, b""))
            lines = [line for line in said.splitlines() if line.startswith("shadowprof: ")]
            check(lines, f"nothing was said ({case})")
        if os.path.exists("profile.json"):
            os.remove("profile.json")
    check(ran, f"the program did not run ({case})")


with scratch() as folder:
    os.chmod(folder, 0o777)
    shutil.copy(SHADOWPROF, "shadowprof")  # to where anybody may execute it
    # This limit does not hold for root.
    user = NOBODY if os.getuid() == 0 else None
    there = tasks_of(os.getuid() if user is None else user)
    check_limits("shadow", "tasks", resource.RLIMIT_NPROC, [there + n for n in (1, 5, 6, 8, 10000)], user)
    for mode, megabytes in {"shadow": (40, 84, 160, 2000), "instant": (60, 104, 700, 2000)}.items():
        check_limits(mode, "megabytes", resource.RLIMIT_AS, [n << 20 for n in megabytes])
    for mode, files in {"shadow": (4, 7, 8, 10, 13, 64), "burst": (7, 10, 64), "full": (8, 13, 64)}.items():
        check_limits(mode, "files", resource.RLIMIT_NOFILE, files)
