"""Facts about a process from /proc. This needs no environment, so that other scripts can use it."""

import contextlib
import os


def children_of(pid):
    """The children of all its threads."""
    children = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        # One may end meanwhile.
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/task/{tid}/children", encoding="ascii") as file:
            children += [int(child) for child in file.read().split()]
    return children


def processes_in(folder):
    """Those whose current folder it is, in no order."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.path.samefile(f"/proc/{pid}/cwd", folder):
                found.append(int(pid))
    return found


def state_of(pid):
    """The letter of proc(5): R, S, T, t, Z …; X if there is no such process any more."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def tracer_of(pid):
    """Process ids that trace one of the process's threads."""
    tracers = set()
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8") as status:
                tracers |= {int(l.split()[1]) for l in status if l.startswith("TracerPid:")}
    return tracers - {0}


def thread_states(pid):
    """R, S, t (stopped by a tracer) ..."""
    states = set()
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open(f"/proc/{pid}/task/{tid}/stat", encoding="ascii", errors="replace") as stat:
                states.add(stat.read().rpartition(")")[2].split()[0])
    return states


def memory_map(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return maps.read()
