"""Functions of Python in the profile of a program: their names, files, lines and shares of the time."""

import json
import os
import re
import subprocess
import sys

from vocabulary import SHADOWPROF, check, check_schema, profiled, read_profile, scratch, skip

# Each function takes as long as the loop in it says. What it took is measured, at no cost worth the name,
# where functions of milliseconds are called.
PROGRAM = """\
import json, sys, threading, time
def spend(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total
class Work:
    def heavy(self):
        return spend(30_000)
    def light(self):
        return max((x for x in self.squares()), key=lambda x: -x)
    def squares(self):
        for i in range(20_000):
            yield i * i
def deep(n):
    return spend(300) if n == 0 else deep(n - 1)
def recursive():
    for _ in range(30):
        deep(20)
def worker(spent, until):
    work = Work()
    while time.time() < until:
        for function in (work.heavy, work.light, recursive):
            before = time.thread_time()
            function()
            spent[function.__name__] = spent.get(function.__name__, 0) + time.thread_time() - before
def main():
    until = time.time() + 6
    results = [{}, {}]
    threads = [threading.Thread(target=worker, args=(spent, until)) for spent in results]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print(json.dumps({name: sum(r[name] for r in results) for name in results[0]}))
main()
"""


def lines_with(text):
    return [n for n, line in enumerate(PROGRAM.splitlines(), 1) if text in line]


def version_of(interpreter):
    out = subprocess.run([interpreter, "-c", "import sys; print(*sys.version_info[:2], sys.implementation.name)"],
                         capture_output=True, text=True, check=False).stdout.split()
    return (int(out[0]), int(out[1])) if len(out) == 3 and out[2] == "cpython" else None


version = version_of(sys.executable)
if version is None or not (3, 9) <= version <= (3, 13):
    skip("no CPython whose structures are known")
if b"kernel refuses its clock" in profiled(["true"]).stderr:
    skip("the kernel refuses its clock")

with scratch():
    with open("planted.py", "w") as file:
        file.write(PROGRAM)
    # More looks than in the usual budget, which the length of a test allows few of.
    outcome = profiled([sys.executable, "planted.py"], "--overhead", "5%")
    spent = json.loads(outcome.stdout)
    profile = read_profile()
    check_schema(profile)

    locations = profile["locations"]
    def short(place):
        return locations[place].get("function", "").split(".")[-1]
    planted = os.path.abspath("planted.py")
    of_file = [l for l in locations if l.get("file") in ("planted.py", planted)]
    check(of_file and all(profile["modules"][l["module"]]["path"] == "[python]" for l in of_file),
          "no function of planted.py was seen")

    time = {}
    for entry in profile["time"]["entries"]:
        for name in {short(frame) for frame in entry["frames"]}:
            time[name] = time.get(name, 0) + entry.get("count", 0)
    in_all = sum(spent.values())
    seen = sum(time.get(name, 0) for name in spent)
    total = profile["time"]["total"]
    check(seen > 0.9 * total, f"only {seen / total:.0%} of the time is in the planted functions")
    for name, seconds in spent.items():
        difference = time[name] / seen - seconds / in_all
        # So many looks tell it to four points, mostly to two.
        check(abs(difference) < 0.08, f"{name} has {time[name] / seen:.1%}, not {seconds / in_all:.1%}")

    # Callers stand in the lines that call.
    called_in = {"heavy": lines_with("return spend(30_000)"), "recursive": lines_with("deep(20)"),
                 "worker": lines_with("function()"), "<module>": lines_with("main()")[-1:]}
    for entry in profile["time"]["entries"]:
        names = [short(frame) for frame in entry["frames"]]
        for callee, frame in zip(names, entry["frames"][1:]):
            caller = short(frame)
            if (callee, caller) in (("spend", "heavy"), ("deep", "recursive"), ("heavy", "worker")):
                line = locations[frame]["line"]
                check(line in called_in[caller], f"{caller} calls {callee} in line {line}")
    leaves = {l["line"] for l in of_file if l["function"] == "spend"}
    check(leaves <= set(range(2, 7)) and leaves & {4, 5}, f"spend is in lines {sorted(leaves)}")

    stacks = subprocess.run([SHADOWPROF, "export", "profile.json", "--format", "collapsed"],
                            capture_output=True, text=True, check=True).stdout
    check(re.search(r"worker;(Work\.)?heavy;spend", stacks), "no stack has worker, heavy, spend")
    listing = subprocess.run([SHADOWPROF, "report", "profile.json", "--function", "spend"],
                             capture_output=True, text=True, check=True).stdout
    check(re.search(r"%\s+5\s+total \+= i \* i % 7", listing), f"spend is listed as\n{listing}")
    report = subprocess.run([SHADOWPROF, "report", "profile.json"], capture_output=True, text=True,
                            check=True).stdout
    check(re.search(r"%\s+spend\s+planted\.py:[45]", report), "no table has spend with its file and line")
