"""shadowprof check in CI: a regression of about 1 % that was planted in one function of an interpreter
fails the gate, which names the function. Runs of the unchanged program pass, although they vary."""

import json
import os
import shutil
import sys

from vocabulary import SHADOWPROF, check, check_equal, check_one_line, run, scratch

unchanged, slower = (os.path.abspath(path) for path in sys.argv[1:3])
BASELINES = 5
REPEATS = 6
LIMITS = ["--max-instructions", "+0.3%", "--max-any-function", "+2%"]


def take(program, file, *options):
    # A new build has the same name as the old one.
    os.makedirs(os.path.basename(file) + ".dir")
    copy = os.path.join(os.path.basename(file) + ".dir", "interpreter")
    shutil.copy(program, copy)
    outcome = run([SHADOWPROF, "run", "-q", "-m", "full", "-p", "method,edge", "--limit", "0", "-o", file, *options,
                   "--", copy])
    check_equal(f"the exit status of the run for {file}", outcome.status, 0)


def gate(*arguments):
    return run([SHADOWPROF, "check", *arguments])


with scratch():
    bases = [f"base{i}.json" for i in range(BASELINES)]
    for file in bases:
        take(unchanged, file)
    for i in range(REPEATS):
        take(unchanged, f"again{i}.json")
        outcome = gate(*bases, f"again{i}.json", *LIMITS)
        check_equal(f"the gate on run {i} of the unchanged program", outcome.status, 0)

    take(slower, "slower.json")
    outcome = gate(*bases, "slower.json", *LIMITS)
    print(outcome.stdout.decode())
    check_equal("the gate on the slower program", outcome.status, 3)
    report = json.loads(gate(*bases, "slower.json", "--json", *LIMITS).stdout)
    exceeded = [v for v in report["verdicts"] if v["exceeded"]]
    total = [v for v in exceeded if v["change"]["name"] == "instructions"]
    check_equal("the number of exceeded limits of the total", len(total), 1)
    growth = total[0]["change"]["new"] / total[0]["change"]["base"] - 1
    check(0.005 < growth < 0.02, f"the planted regression is one of {growth:.2%}")
    check_equal("the function that grew", [c["name"] for c in total[0]["causes"]][:1], ["lookup"])
    check_equal("the functions beyond their limit", [v["change"]["name"] for v in exceeded if v not in total], ["lookup"])

    check_equal("a limit on another function", gate(*bases, "slower.json", "--max-function", "evaluate=+1%").status, 0)
    check_equal("a limit on the function", gate(*bases, "slower.json", "--max-function", "look*=+1%").status, 3)
    for form, word in (("markdown", b"lookup"), ("github-action-benchmark", b"range"), ("bencher", b"upper_value")):
        outcome = gate(*bases, "slower.json", "--format", form, *LIMITS)
        check(word in outcome.stdout, f"{form} does not say {word}")
        check_equal(f"the exit status with {form}", outcome.status, 3)
    check_equal("the exit status of diff", run([SHADOWPROF, "diff", bases[0], "slower.json"]).status, 0)

    for expected, arguments in (
        (2, [bases[0], bases[1]]),
        (2, [bases[0], "--max-instructions", "1%"]),
        (2, [bases[0], bases[1], "--max-instructions", "much"]),
        (2, [bases[0], bases[1], "--max-function", "lookup"]),
        (1, [bases[0], bases[1], "--max-function", "absent=1%"]),
        (1, [bases[0], "absent.json", "--max-instructions", "1%"]),
    ):
        outcome = gate(*arguments)
        check_equal(f"the exit status of check {arguments}", outcome.status, expected)
        check_one_line(outcome)
    outcome = run([SHADOWPROF, "run", "-q", "-m", "burst", "-o", "burst.json", "--", unchanged])
    outcome = gate(bases[0], "burst.json", "--max-instructions", "1%")
    check_equal("the exit status with another mode", outcome.status, 4)
    check_one_line(outcome)
