"""The program begins in the same surroundings as without shadowprof: files, signals, limits."""

import os
import resource
import signal
import sys

from vocabulary import same_as_native, scratch

LOOK = r"""
import os, re, resource, sys
status = open("/proc/self/status").read()
# Signals 32 and 33 belong to the C library, which takes them for itself in every process.
status = re.sub(r"(?<=Sig...:\t)\w+", lambda m: hex(int(m[0], 16) & ~(3 << 31)), status)
for key in ("Sig(?:Pnd|Blk|Ign|Cgt)", "ShdPnd", "Cpus_allowed", "NoNewPrivs", "Seccomp", "Cap\\w+", "Umask"):
    print(re.findall(rf"^{key}:.*$", status, re.M))
print(sorted((int(n), os.readlink(f"/proc/self/fd/{n}")) for n in os.listdir("/proc/self/fd")
             if os.path.exists(f"/proc/self/fd/{n}") and int(n) not in (1, 2)))
print(os.getcwd(), os.nice(0), os.getsid(0), sorted(os.environ.items()), sys.argv)
print([resource.getrlimit(r) for r in range(16)])
print(os.sched_getaffinity(0), os.sched_getscheduler(0), open("/proc/self/personality").read())
"""

signal.signal(signal.SIGHUP, signal.SIG_IGN)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGALRM, signal.SIGTTOU})
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
os.umask(0o027)

with scratch():
    same_as_native([sys.executable, "-S", "-E", "-c", LOOK, "a b", ""], close_fds=False, restore_signals=False)
