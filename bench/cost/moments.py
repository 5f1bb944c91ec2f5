"""What `attach` costs a running program, by the progress that each stop costs. See run.sh.

Where neighbours share the machine, two windows of a second differ by a tenth, and so do two windows
of 20 ms next to each other. So short windows tell more than long ones: of these there are thousands.
But profiling can not be switched on and off that fast. What can be known is when it acts: a replica
is born, or a burst begins, when the program has been stopped. So progress is read every few
milliseconds and laid into bins of 25 ms, and what is told is how much less of it there is in the
bins from a stop on (--after: 100 ms) than in those around them: least squares of progress by the
number of stops that came so many bins before, both freed of what the bins before tell of the next
(an autoregression). The slowdown is that loss times the stops in a second. Profiling is never
switched off, so a program's pages, caches and the profiler's schedule are what they are always.

The error comes from the same run: the stops, all moved along it by the same random time, a hundred
times. The A/A column is what that gives on average, and the interval around the slowdown is twice its
standard deviation each way.

Not seen is what profiling takes at any distance of a stop alike, and what comes later than --after.
--known stops the program itself for so many milliseconds at random moments, instead of profiling:
what is measured must be what they come to, which is printed as what the profile says.

Needs root, to see stops in the kernel's trace."""

import argparse
import json
import os
import random
import re
import signal
import tempfile
import threading
import time

import numpy

from targets import ON_EXIT, TARGETS, attach, detach

WARMING = 4  # seconds: the first samples of a session cost more
BIN = 0.025
ORDER = 12  # of the autoregression
SHIFTS = 100
TRACED = 8  # prev_state of a thread that stops for its tracer


class Profiled:
    """Stops by shadowprof, whose times the kernel's trace has."""

    instance = f"/sys/kernel/tracing/instances/shadowprof-cost-{os.getpid()}"

    def __init__(self, target, folder, options):
        if not os.path.isdir(os.path.dirname(self.instance)):
            raise SystemExit("no /sys/kernel/tracing: mount -t tracefs nodev /sys/kernel/tracing")
        self.profile = f"{folder}/profile.json"
        self.process = attach(target, self.profile, options)
        time.sleep(WARMING)
        os.mkdir(self.instance)
        ON_EXIT.callback(lambda: os.rmdir(self.instance))
        self.set("trace_clock", "mono")
        self.set("buffer_size_kb", "20000")
        threads = " || ".join(f"prev_pid == {tid}" for tid in os.listdir(f"/proc/{target.pid}/task"))
        self.set("events/sched/sched_switch/filter", f"prev_state & {TRACED} && ({threads})")
        self.set("events/sched/sched_switch/enable", "1")

    def set(self, name, value):
        with open(f"{self.instance}/{name}", "w", encoding="ascii") as file:
            file.write(value)

    def end(self):
        """When the program was stopped, and what the profile says that this cost."""
        self.set("tracing_on", "0")
        with open(f"{self.instance}/trace", encoding="utf-8", errors="replace") as trace:
            moments = [float(found[1]) for line in trace if (found := re.search(r" (\d+\.\d+): sched_switch", line))]
        detach(self.process)
        with open(self.profile, encoding="utf-8") as file:
            return moments, json.load(file)["cost"]["slowdown"]


class Known:
    """Stops of a known length, at random times, five a second."""

    def __init__(self, target, _, options):
        self.target, self.length = target, options.known / 1000
        self.moments, self.stopped, self.ended = [], 0.0, threading.Event()
        self.began = time.monotonic()
        self.thread = threading.Thread(target=self.stop_it, daemon=True)
        self.thread.start()

    def stop_it(self):
        while not self.ended.wait(random.uniform(0.1, 0.3)):
            os.kill(self.target.pid, signal.SIGSTOP)
            self.moments.append(time.monotonic())
            time.sleep(self.length)
            os.kill(self.target.pid, signal.SIGCONT)
            self.stopped += time.monotonic() - self.moments[-1]

    def end(self):
        self.ended.set()
        self.thread.join()
        return self.moments, self.stopped / (time.monotonic() - self.began - self.stopped)


def record(target, seconds, every):
    """Times, and the progress until then, where there was any."""
    steps = []
    ends = time.monotonic() + seconds
    while (now := time.monotonic()) < ends:
        progress = target.progress()
        if not steps or progress > steps[-1][1]:
            steps.append(((now + time.monotonic()) / 2, progress))
        time.sleep(every)
    return numpy.array(steps, dtype=float)


def delayed(series, by):
    return numpy.roll(series, by, axis=0)


class Losses:
    """Progress in bins, as a share of the mean bin's."""

    def __init__(self, steps, after):
        self.edges = numpy.arange(steps[0, 0], steps[-1, 0], BIN)
        speed = numpy.diff(numpy.interp(self.edges, steps[:, 0], steps[:, 1]))
        self.speed = speed / speed.mean() - 1
        before = numpy.column_stack([delayed(self.speed, k) for k in range(1, ORDER + 1)])[ORDER:]
        self.memory = numpy.linalg.lstsq(before, self.speed[ORDER:], rcond=None)[0]
        self.lags = round(after / BIN)
        self.left = self.unforeseen(self.speed)

    def unforeseen(self, series):
        told = sum(share * delayed(series, k) for k, share in enumerate(self.memory, 1))
        return (series - told)[ORDER:]

    def stops_in_bins(self, moments):
        return numpy.histogram(moments, self.edges)[0].astype(float)

    def after_a_stop(self, stops):
        """The progress lost in the bins after a stop, in bins."""
        columns = [self.unforeseen(delayed(stops - stops.mean(), k)) for k in range(self.lags)]
        return -numpy.linalg.lstsq(numpy.column_stack(columns), self.left, rcond=None)[0]

    @staticmethod
    def slowdown(lost, stops):
        share = lost.sum() * stops.mean()
        return share / (1 - share)

    def moved(self, stops):
        """What stops that did not happen seem to cost."""
        chance = numpy.random.default_rng(1)
        nearest, farthest = 10 * self.lags, len(stops) - 10 * self.lags
        return numpy.array([self.slowdown(self.after_a_stop(delayed(stops, int(by))), stops)
                            for by in chance.integers(nearest, farthest, SHIFTS)])  # fmt: skip


def measure(name, options):
    with tempfile.TemporaryDirectory(prefix="cost-", dir=options.scratch) as folder, ON_EXIT:
        target = TARGETS[name](folder, options.build)
        time.sleep(2)  # warm
        source = (Known if options.known else Profiled)(target, folder, options)
        steps = record(target, options.seconds, 0.02 if target.answers_itself else 0.004)
        moments, told = source.end()
    losses = Losses(steps, options.after)
    stops = losses.stops_in_bins(moments)
    lost = losses.after_a_stop(stops)
    cost, moved = losses.slowdown(lost, stops), losses.moved(stops)
    reach = 1.96 * moved.std()
    a_second = stops.mean() / BIN
    print(f"{name:<12}{cost:>7.2%} [{cost - reach:>6.2%}, {cost + reach:>6.2%}]{moved.mean():>8.2%}"
          f"{told:>9.2%}{a_second:>8.1f}{1e3 * cost / max(a_second, 1e-9):>9.2f}   "
          + " ".join(f"{1e3 * BIN * loss:.2f}" for loss in lost), flush=True)  # fmt: skip
    return cost + reach


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="the build folder")
    parser.add_argument("--seconds", type=float, default=110, help="for each target")
    parser.add_argument("--mode", default="auto", choices=["auto", "instant", "shadow", "burst"])
    parser.add_argument("--after", type=float, default=0.1, help="seconds from a stop on in which it may cost")
    parser.add_argument("--known", type=float, default=0, help="milliseconds: stop the program instead of profiling it")
    parser.add_argument("--limit", type=float, default=1.5, help="percent: above it, fail")
    parser.add_argument("--options", default="", help="further options of attach")
    parser.add_argument("--scratch", help="where files go; best in memory")
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS], default=[])
    options = parser.parse_args()
    print(f"{'target':<12}{'slowdown':>7} {'95 % interval':<17}{'A/A':>7}{'told':>9}{'stops/s':>8}{'ms each':>9}"
          f"   ms lost in each {1e3 * BIN:.0f} ms from a stop on", flush=True)  # fmt: skip
    highest = max([measure(name, options) for name in options.targets or TARGETS])
    if highest * 100 > options.limit:
        raise SystemExit(f"above {options.limit} %")


main()
