"""Functions of Python in the profile of a program: their names, files, lines and shares of the time."""

import subprocess
import sys

from interpreted import check_functions, skip_where_nothing_is_read
from vocabulary import skip

# Each function takes as long as the loop in it says. What it took is measured, at no cost worth the name,
# where functions of milliseconds are called. How long it runs does not depend on other programs.
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
    while time.process_time() < until:
        for function in (work.heavy, work.light, recursive):
            before = time.thread_time()
            function()
            spent[function.__name__] = spent.get(function.__name__, 0) + time.thread_time() - before
def main():
    until = 4
    results = [{}, {}]
    threads = [threading.Thread(target=worker, args=(spent, until)) for spent in results]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print(json.dumps({name: sum(r[name] for r in results) for name in results[0]}))
main()
"""


def version_of(interpreter):
    out = subprocess.run([interpreter, "-c", "import sys; print(*sys.version_info[:2], sys.implementation.name)"],
                         capture_output=True, text=True, check=False).stdout.split()
    return (int(out[0]), int(out[1])) if len(out) == 3 and out[2] == "cpython" else None


version = version_of(sys.executable)
if version is None or not (3, 9) <= version <= (3, 13):
    skip("no CPython whose structures are known")
skip_where_nothing_is_read()
check_functions(sys.executable, "python", "py", PROGRAM, {
    ("spend", "heavy"): "return spend(30_000)",
    ("deep", "recursive"): "deep(20)",
    ("heavy", "worker"): "function()",
}, "total += i * i % 7")
