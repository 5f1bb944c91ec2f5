#!/usr/bin/env python3
"""Does shadowprof grow in a long session?

    bench/soak/run.py [--build DIR] [--kind memory|code|all] [--minutes N] [--options "..."] [--heap] [--json FILE]

Runs a program whose memory is never the same (random_memory.c, which says what the kinds are) in mode
shadow, with replicas as often as they fit on the idle cores, for so many minutes (30), and looks at
shadowprof every ten seconds: resident memory, open descriptors, threads, and the processes that are
its or the program's children. With --heap it is also told by shadowprof's allocator (told_heap.c, preloaded)
how much is held: of memory that grows, that tells what is held from what the allocator keeps.
Prints a line each minute, and how long replicas have computed; exit status 1 if the program or
shadowprof failed, if there is no profile, if a process remained, if descriptors or threads at the end
are more than after the first quarter, or if memory grew by more than a tenth since then. From one look
to the next it goes up and down by nearly that, with the samples in flight: so means of a twelfth of
the looks each are compared."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../tests/programs"))
from processes import children_of  # noqa: E402


def look(profiler, program):
    with open(f"/proc/{profiler}/statm", encoding="ascii") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return {
        "resident": resident,
        "descriptors": len(os.listdir(f"/proc/{profiler}/fd")),
        "threads": len(os.listdir(f"/proc/{profiler}/task")),
        "processes": len(children_of(profiler)) + len(children_of(program)),
    }


class Heap:
    """What the allocator of a process has, as told_heap.c wrote it."""

    def __init__(self, folder):
        library, self.told = os.path.join(folder, "told_heap.so"), os.path.join(folder, "heap")
        source = os.path.join(HERE, "told_heap.c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-pthread", source, "-o", library], check=True)
        self.environment = {"LD_PRELOAD": library, "TOLD_HEAP": self.told}

    def look(self):
        with open(self.told, encoding="ascii") as file:
            held, kept = file.read().splitlines()[-1].split()
        return {"held": int(held), "kept": int(kept)}


def mean(looks, what):
    return statistics.mean(look[what] for look in looks)


def line(seconds, seen):
    heap = f" (held {seen['held'] / 1e6:.1f}, kept {seen['kept'] / 1e6:.1f})" if "held" in seen else ""
    return (f"{seconds:6.0f} s: {seen['resident'] / 1e6:.0f} MB{heap}, {seen['descriptors']} descriptors,"
            f" {seen['threads']} threads, {seen['processes']} child processes")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--kind", choices=("memory", "code", "all"), default="memory")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--options", default="--overhead 50% --load 1")
    parser.add_argument("--heap", action="store_true", help="also what shadowprof's allocator has")
    parser.add_argument("--json", help="writes what was seen there")
    options = parser.parse_args()
    shadowprof = os.path.abspath(os.path.join(options.build, "shadowprof"))
    with tempfile.TemporaryDirectory(prefix="bench-soak-") as folder:
        source, program = os.path.join(HERE, "random_memory.c"), os.path.join(folder, "random_memory")
        subprocess.run(["cc", "-O2", "-pthread", source, "-o", program, "-ldl"], check=True)
        target = subprocess.Popen([program, options.kind, str(options.minutes * 60 + 600)], stdout=subprocess.DEVNULL)
        time.sleep(1)
        profile = os.path.join(folder, "profile.json")
        heap = Heap(folder) if options.heap else None
        profiler = subprocess.Popen([shadowprof, "attach", "-q", "-m", "shadow", *options.options.split(),
                                     "-o", profile, str(target.pid)],
                                    env={**os.environ, **(heap.environment if heap else {})})
        seen, began, failures = [], time.monotonic(), []
        while time.monotonic() < began + options.minutes * 60:
            time.sleep(10)
            if target.poll() is not None or profiler.poll() is not None:
                failures.append(f"the program ended with {target.poll()}, shadowprof {profiler.poll()}")
                break
            seen.append({**look(profiler.pid, target.pid), **(heap.look() if heap else {})})
            if len(seen) % 6 == 0:
                print(line(time.monotonic() - began, seen[-1]), flush=True)
        if not failures:
            profiler.terminate()
            status = profiler.wait(60)
            if status != 0:
                failures.append(f"shadowprof ended with {status}")
            left = children_of(target.pid)
            if left:
                failures.append(f"{len(left)} processes remain")
            time.sleep(2)
            if target.poll() is not None:
                failures.append(f"the program ended with {target.poll()}")
        target.kill()
        if not seen:
            sys.exit(failures[0])
        window = len(seen) // 12 + 1
        first, last = seen[len(seen) // 4 :][:window], seen[-window:]
        for what in ("descriptors", "threads"):
            most = max(s[what] for s in seen[: len(seen) // 4 + 1])
            if last[-1][what] > most:
                failures.append(f"{what}: {last[-1][what]}, at most {most} in the first quarter")
        if mean(last, "resident") > 1.1 * mean(first, "resident"):
            failures.append("memory grew by more than a tenth")
        told = {}
        if os.path.exists(profile):
            with open(profile, encoding="utf-8") as file:
                told = json.load(file)
        else:
            failures.append("no profile was written")
        print(line(time.monotonic() - began, seen[-1]))
        for what in ("resident", "held", "kept"):
            if what in seen[-1]:
                print(f"{what}, mean: {mean(first, what) / 1e6:.1f} MB after the first quarter,"
                      f" {mean(last, what) / 1e6:.1f} at the end")
        print(json.dumps({what: told.get(what) for what in ("cost", "coverage")}))
        print("\n".join(failures) or "it did not grow")
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump({"seen": seen, "cost": told.get("cost"), "failures": failures}, file, indent=1)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
