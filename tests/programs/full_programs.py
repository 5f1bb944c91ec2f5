"""--mode full: programs run from the code cache do what they do without, and the profile is of all
they did."""

import os
import sys

from vocabulary import check, check_equal, same_as_native, scratch

hostile = os.path.abspath(sys.argv[1])
PYTHON = """
import re, threading
def count(n):
    total = 0
    for i in range(2000):
        try:
            if i % 5 == 0:
                raise ValueError(i)
            total += i % n
        except ValueError as e:
            total += int(str(e))
    sums.append(total)
sums = []
threads = [threading.Thread(target=count, args=(n + 1,)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
print(sorted(sums), len(re.findall(r"a+b", "aab" * 500)))
"""

with scratch():
    with open("text", "w", encoding="ascii") as text:
        for number in range(60_000):
            text.write(f"{number * number % 9973} ")
    for command in (
        ["gzip", "-9", "-n", "-c", "text"],
        ["sort", "-n", "text"],
        ["/usr/bin/python3", "-c", PYTHON],
        ["sh", "-c", "echo one; (exit 4); kill -TERM $$"],
        [hostile],
    ):
        for options in (["-p", "path,edge"], ["-p", "all"]):
            profile = same_as_native(command, "--mode", "full", *options)
            check_equal("the mode", profile["run"]["mode"], "full")
            check(profile["coverage"]["instructions"] > 50_000, f"{command[0]}: too little was seen")
            check(not profile["run"].get("interrupted"), f"{command[0]}: profiling was cut short")
            check_equal("warnings", profile["run"].get("warnings", []), [])
