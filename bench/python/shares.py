#!/usr/bin/env python3
"""Holds the shares of time that a profile tells for functions of Python against what they took.

    shares.py SHADOWPROF INTERPRETER [SECONDS [OVERHEAD]]
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = ("recursive", "classes", "threads", "extensions")


def shares_seen(shadowprof, profile, parts):
    out = subprocess.run([shadowprof, "export", "--format", "collapsed", profile],
                         capture_output=True, text=True, check=True).stdout
    seen, total, in_python = dict.fromkeys(parts, 0), 0, 0
    for line in out.splitlines():
        stack, weight = line.rsplit(" ", 1)
        frames = set(stack.split(";"))
        total += int(weight)
        in_python += int(weight) * any(f in frames for f in ("<module>", "Thread._bootstrap", "_bootstrap"))
        for part in frames & seen.keys():
            seen[part] += int(weight)
    return {part: weight / sum(seen.values()) for part, weight in seen.items()}, in_python / total


def main(shadowprof, interpreter, seconds="12", overhead="10%"):
    with tempfile.TemporaryDirectory() as folder:
        truth, profile = f"{folder}/truth.json", f"{folder}/profile.json"
        for program in PROGRAMS:
            subprocess.run([shadowprof, "run", "-q", "--overhead", overhead, "-o", profile, "--", interpreter,
                            Path(__file__).with_name(program + ".py"), truth, seconds], check=True)
            spent = json.loads(Path(truth).read_text(encoding="utf-8"))
            seen, in_python = shares_seen(shadowprof, profile, spent)
            told = json.loads(Path(profile).read_text(encoding="utf-8"))
            print(f"{program}: {told['time']['samples']} looks, {in_python:.1%} of the time in its functions, "
                  f"slowdown {told['cost']['slowdown']:.1%}, of that clock {told['cost']['parts']['clock']:.2%}")
            for part, took in spent.items():
                took /= sum(spent.values())
                print(f"    {part:<20} took {took:6.1%}  seen {seen[part]:6.1%}  {100 * (seen[part] - took):+.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
