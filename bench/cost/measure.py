"""What `attach` costs a running program. See run.sh.

Two runs of a program differ by more than the cost that is to be seen. So it is measured within one
run, as progress in alternating windows with and without profiling. Windows come in fours, U P P U or
P U U P (U unprofiled, P profiled): a drift that is linear over the four cancels out. Each four gives
one estimate of the slowdown, (progress in U) / (progress in P) - 1; their mean is printed with its
95 % interval (Student's t). Every fourth four is one in which P is not profiled either, the A/A
windows: what they show is the error of the method.

Where neighbours take the machine away for a second, few fours decide about the mean. So there is
also the centre of the estimates, the median of the means of any two of them (Hodges and Lehmann's),
with the 95 % interval of Wilcoxon's signed ranks. What is the same in most fours it sees as the mean
does, with an error that is a fraction of the mean's there.

Profiling is switched off by stopping shadowprof itself (SIGSTOP) at a moment at which it does nothing
and has stopped no thread of the target; it is switched on by SIGCONT. Attaching and detaching are
thus outside of the windows. With --sessions every P is a session of its own, and they are inside.
The target's memory map must be the same before, meanwhile and afterwards.

The first samples of a session cost more than the later ones and hold the rate down: so profiling
goes on for some seconds before the first window."""

import argparse
import contextlib
import itertools
import json
import math
import os
import signal
import statistics
import tempfile
import time

from targets import ON_EXIT, TARGETS, attach, detach

# 97.5 % quantiles of Student's t by degrees of freedom; between them, the larger is used.
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 10: 2.23,
           12: 2.18, 15: 2.13, 20: 2.09, 30: 2.04, 60: 2.00, 120: 1.98}  # fmt: skip

WARMING = 4  # seconds
WAITING = {"128", "202", "219", "247"}  # rt_sigtimedwait, futex, restart_syscall (of futex), waitid


def student(freedom):
    return STUDENT[max(known for known in STUDENT if known <= freedom)]


def threads(pid, of_lowest_priority=True):
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/stat", encoding="ascii", errors="replace") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended meanwhile
        if of_lowest_priority or fields[16] != "19":
            yield tid, fields[0]


def states(pid, of_lowest_priority=True):
    """The states of a process's threads: R, S, T, t ..."""
    return {state for _, state in threads(pid, of_lowest_priority)}


def system_calls(pid):
    """The numbers of the system calls that a stopped process is in; -1 for none."""
    found = set()
    for tid, _ in threads(pid, of_lowest_priority=False):
        with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as call:
            found.add(call.read().split()[0])
    return found


class PersistentSession:
    """One attach for all windows. Between them shadowprof is stopped."""

    def __init__(self, target, profile, options):
        self.target = target
        self.process = attach(target, profile, options)
        time.sleep(WARMING)
        self.seconds = WARMING
        self.pause()

    # shadowprof must not be stopped within a burst, nor between a burst and its entry in the books: it would
    # book the whole pause. A thread that was asked to stop must have stopped and been let go, unless
    # others of the program wait for its place. A thread that does not compute because all others
    # come first does not stop either, and need not.
    def pause(self):
        patience = 0.005
        while True:
            self.process.send_signal(signal.SIGSTOP)
            while states(self.process.pid, of_lowest_priority=False) != {"T"}:
                time.sleep(0.0005)
            time.sleep(0.001)
            if (system_calls(self.process.pid) <= WAITING and not self.holds_up_target()
                    and not self.has_replicas()):
                break
            self.process.send_signal(signal.SIGCONT)
            time.sleep(patience)
            patience = min(0.1, 1.5 * patience)

    def has_replicas(self):
        """Replicas are traced by threads of shadowprof, and are not the target."""
        ours = {tid for tid, _ in threads(self.process.pid, of_lowest_priority=False)}
        for pid in os.listdir("/proc"):
            if not pid.isdigit() or int(pid) == self.target.pid:
                continue
            try:
                with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
                    tracer = next(line for line in status if line.startswith("TracerPid:"))
            except (FileNotFoundError, ProcessLookupError, StopIteration):
                continue
            if tracer.split()[1] in ours:
                return True
        return False

    def holds_up_target(self):
        return not self.target.many_threads and "t" in states(self.target.pid)

    @contextlib.contextmanager
    def profiling(self):
        began = time.monotonic()
        self.process.send_signal(signal.SIGCONT)
        yield
        self.pause()
        self.seconds += time.monotonic() - began

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        detach(self.process)


class Sessions:
    """One attach for each window."""

    def __init__(self, *attaching):
        self.attaching = attaching
        self.seconds = 0

    @contextlib.contextmanager
    def profiling(self):
        began = time.monotonic()
        profiler = attach(*self.attaching)
        yield
        detach(profiler)
        self.seconds += time.monotonic() - began

    def end(self):
        pass


def mappings(target):
    """What a program has mapped; only the files if the program maps memory all the time."""
    with open(f"/proc/{target.pid}/maps", encoding="utf-8") as maps:
        return [line for line in maps if not target.maps_memory or "/" in line]


def without_nursery(maps):
    """Meanwhile the program has our area: the code cache, and what forks replicas."""
    return [line for line in maps if "/memfd:shadowprof" not in line]


def check_unchanged(before, now):
    if now != before:
        raise SystemExit("mapped since it was attached to: " + "".join(set(now) ^ set(before)))


def next_step(target):
    """Its progress, and the time, when it next makes some: a compressor that reads by blocks does so
    ten times a second, and half a block is 10 % of a window."""
    before = target.progress()
    deadline = time.monotonic() + 1
    while True:
        now, at = time.monotonic(), target.progress()
        if at != before or now > deadline:
            return at, now
        time.sleep(0.0005)


def speed(target, length):
    before, began = next_step(target)
    time.sleep(length)
    after, ended = next_step(target)
    return (after - before) / (ended - began)


def one_four(target, length, treatment, treated_outside):
    """The slowdown that the treatment causes."""
    speeds = {True: 0.0, False: 0.0}
    for inside in (False, True, True, False):
        treated = inside != treated_outside
        with treatment() if treated else contextlib.nullcontext():
            speeds[treated] += speed(target, length)
    return speeds[False] / speeds[True] - 1


def mean_of(estimates):
    """With its 95 % interval."""
    mean = statistics.fmean(estimates)
    reach = student(len(estimates) - 1) * statistics.stdev(estimates) / math.sqrt(len(estimates))
    return mean, mean - reach, mean + reach


def centre_of(estimates):
    """With its 95 % interval."""
    n = len(estimates)
    means = sorted((a + b) / 2 for a, b in itertools.combinations_with_replacement(estimates, 2))
    reach = 1.96 * math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    lowest = max(0, math.floor(n * (n + 1) / 4 - reach))
    return statistics.median(means), means[lowest], means[-1 - lowest]


def own_account(path, seconds):
    """The slowdown that the profile reports for the time while profiling was on."""
    with open(path, encoding="utf-8") as file:
        profile = json.load(file)
    cost, duration = profile["cost"], profile["run"]["duration"]
    share = cost["slowdown"] / (1 + cost["slowdown"])
    booked = duration * share
    return booked / (seconds - booked), cost["stops"] / seconds, cost["stop_time"] / max(1, cost["stops"])


def measure(name, options):
    with tempfile.TemporaryDirectory(prefix="cost-", dir=options.scratch) as folder, ON_EXIT:
        target = TARGETS[name](folder, options.build)
        time.sleep(2)  # warm
        profile = f"{folder}/profile.json"
        mapped = mappings(target)
        session = (Sessions if options.sessions else PersistentSession)(target, profile, options)
        with_it, without = [], []
        ends = time.monotonic() + options.seconds
        for turn in itertools.count():
            if time.monotonic() > ends and len(without) >= 3:
                break
            treated_outside = turn // 4 % 2 == 1
            if turn % 4 == 3:
                without.append(one_four(target, options.window, contextlib.nullcontext, treated_outside))
            else:
                with_it.append(one_four(target, options.window, session.profiling, treated_outside))
            check_unchanged(mapped, without_nursery(mappings(target)))
        session.end()
        check_unchanged(mapped, mappings(target))
        own = own_account(profile, session.seconds) if not options.sessions else (math.nan,) * 3
        row = f"{name:<10}{len(with_it):>4}"
        for estimates, kind in itertools.product((with_it, without), (mean_of, centre_of)):
            middle, low, high = kind(estimates)
            row += f"{middle:>8.2%} [{low:>6.2%}, {high:>6.2%}]"
        print(row + f"{own[0]:>9.2%}{own[1]:>8.1f}{own[2] * 1e6:>8.0f}", flush=True)
        return mean_of(with_it)[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="the build folder")
    parser.add_argument("--seconds", type=float, default=90, help="for each target")
    parser.add_argument("--window", type=float, default=0.5, help="seconds of a window")
    parser.add_argument("--mode", default="auto", choices=["auto", "instant", "shadow", "burst"])
    parser.add_argument("--sessions", action="store_true", help="attach anew in every window")
    parser.add_argument("--limit", type=float, default=1.5, help="percent: above it, fail")
    parser.add_argument("--options", default="", help="further options of attach")
    parser.add_argument("--scratch", help="where files go; best in memory")
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS], default=[])
    options = parser.parse_args()
    print(f"{'':<14}{'slowdown, profiled':^50}{'not profiled (A/A)':^50}{'the profile says':>25}")
    each = f"{'mean':>8} {'95 % interval':<16}{'centre':>8} {'95 % interval':<16}"
    print(f"{'target':<10}{'n':>4}{each}{each}{'slowdown':>9}{'stops/s':>8}{'us each':>8}", flush=True)
    highest = max([measure(name, options) for name in options.targets or TARGETS])
    if highest * 100 > options.limit:
        raise SystemExit(f"above {options.limit} %")


main()
