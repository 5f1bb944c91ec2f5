"""What is true of the functions of any language in the profile of a program: names, files, lines and shares."""

import json
import math
import os
import re
import subprocess

from vocabulary import SHADOWPROF, check, check_schema, profiled, read_profile, scratch, skip


def skip_where_nothing_is_read():
    if b"kernel refuses its clock" in profiled(["true"]).stderr:
        skip("the kernel refuses its clock")


def lines_with(program, text):
    return [n for n, line in enumerate(program.splitlines(), 1) if text in line]


def check_functions(interpreter, language, suffix, program, called_in, loop):
    """The program prints what each of its functions took. `called_in`: (function, caller) and the text of the
    line of the caller that calls it; `loop`: the text of a line of the function spend that takes long."""
    with scratch():
        planted = "planted." + suffix
        with open(planted, "w") as file:
            file.write(program)
        # More looks than in the usual budget, which the length of a test allows few of.
        outcome = profiled([interpreter, planted], "--overhead", "5%")
        spent = json.loads(outcome.stdout)
        profile = read_profile()
        check_schema(profile)

        locations = profile["locations"]
        def short(place):
            return re.split("[.#]", locations[place].get("function", ""))[-1]
        is_planted = lambda location: location.get("file") in (planted, os.path.realpath(planted))
        of_file = [l for l in locations if is_planted(l)]
        check(of_file and all(profile["modules"][l["module"]]["path"] == f"[{language}]" for l in of_file),
              f"no function of {planted} was seen")

        time = {}
        for entry in profile["time"]["entries"]:
            for name in {short(frame) for frame in entry["frames"]}:
                time[name] = time.get(name, 0) + entry.get("count", 0)
        in_all = sum(spent.values())
        seen = sum(time.get(name, 0) for name in spent)
        total = profile["time"]["total"]
        check(total > 0, f"no time was seen: {profile['run']}")
        known = sum(entry.get("count", 0) for entry in profile["time"]["entries"]
                    if any(is_planted(locations[frame]) for frame in entry["frames"]))
        check(known > 0.9 * total, f"only {known / total:.0%} of the time is in the planted functions")
        for name, seconds in spent.items():
            difference = time[name] / seen - seconds / in_all
            # As far as so many looks tell: on a busy machine there are few.
            margin = 0.03 + 4 * math.sqrt(0.25 / profile["time"]["samples"])
            check(abs(difference) < margin, f"{name} has {time[name] / seen:.1%}, not {seconds / in_all:.1%}")

        # Callers stand in the lines that call.
        for entry in profile["time"]["entries"]:
            names = [short(frame) for frame in entry["frames"]]
            for callee, caller, frame in zip(names, names[1:], entry["frames"][1:]):
                if (callee, caller) in called_in:
                    line = locations[frame]["line"]
                    check(line in lines_with(program, called_in[callee, caller]),
                          f"{caller} calls {callee} in line {line}")
        long_line = lines_with(program, loop)[0]
        leaves = {l["line"] for l in of_file if re.split("[.#]", l["function"])[-1] == "spend"}
        first = lines_with(program, "def spend")[0]
        check(leaves <= set(range(first, long_line + 5)) and long_line in leaves,
              f"spend is in lines {sorted(leaves)}")

        stacks = subprocess.run([SHADOWPROF, "export", "profile.json", "--format", "collapsed"],
                                capture_output=True, text=True, check=True).stdout
        check(re.search(r"worker;.*heavy;([^;]*[.#])?spend", stacks), "no stack has worker, heavy, spend")
        listing = subprocess.run([SHADOWPROF, "report", "profile.json", "--function", "spend"],
                                 capture_output=True, text=True, check=True).stdout
        check(re.search(rf"%\s+{long_line}\s+{re.escape(loop)}", listing), f"spend is listed as\n{listing}")
        report = subprocess.run([SHADOWPROF, "report", "profile.json"], capture_output=True, text=True,
                                check=True).stdout
        check(re.search(rf"%\s+\S*spend\s+{planted}:\d", report), "no table has spend with its file and line")
        return profile
