#!/usr/bin/env python3
"""Holds the shares of time that a profile tells for functions of Python or Ruby against what they took.

    shares.py SHADOWPROF INTERPRETER [SECONDS [OVERHEAD [PROGRAM...]]]
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = ("recursive", "classes", "threads", "extensions")


def shares_seen(profile, language, parts):
    """Of each part, and of all that the interpreter executes."""
    module = next(n for n, m in enumerate(profile["modules"]) if m["path"] == f"[{language}]")
    # "Object#fib_part" where Ruby says whose it is.
    names = {n: re.split("[#.]", place["function"])[-1] for n, place in enumerate(profile["locations"])
             if place["module"] == module}
    seen, known = dict.fromkeys(parts, 0), 0
    for entry in profile["time"]["entries"]:
        frames = {names[frame] for frame in entry["frames"] if frame in names}
        known += entry.get("count", 0) * bool(frames)
        for part in frames & seen.keys():
            seen[part] += entry.get("count", 0)
    return {part: weight / sum(seen.values()) for part, weight in seen.items()}, known / profile["time"]["total"]


def main(shadowprof, interpreter, seconds="12", overhead="10%", *programs):
    language = "ruby" if "ruby" in Path(interpreter).name else "python"
    with tempfile.TemporaryDirectory() as folder:
        truth, profile = f"{folder}/truth.json", f"{folder}/profile.json"
        for program in programs or PROGRAMS:
            source = next((Path(__file__).parent / language).glob(program + ".*"))
            subprocess.run([shadowprof, "run", "-q", "--overhead", overhead, "-o", profile, "--",
                            *interpreter.split(), source, truth, seconds], check=True)
            spent = json.loads(Path(truth).read_text(encoding="utf-8"))
            told = json.loads(Path(profile).read_text(encoding="utf-8"))
            seen, known = shares_seen(told, language, spent)
            print(f"{program}: {told['time']['samples']} looks, {known:.1%} of the time in its functions, "
                  f"slowdown {told['cost']['slowdown']:.1%}, of that clock {told['cost']['parts']['clock']:.2%}")
            for part, took in spent.items():
                took /= sum(spent.values())
                print(f"    {part:<20} took {took:6.1%}  seen {seen[part]:6.1%}  {100 * (seen[part] - took):+.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
