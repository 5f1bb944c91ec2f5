"""Profiles planted.c and unremarkable.c in mode full, where every count is exact, and reads what
`shadowprof report` finds. Arguments: planted.c, the two programs."""

import os
import re
import subprocess
import sys
import tempfile

SHADOWPROF = os.environ["SHADOWPROF"]


def findings(command, options, folder):
    """What the report tells, in its order: (kind, source line). And the text."""
    profile = os.path.join(folder, "profile.json")
    subprocess.run([SHADOWPROF, "run", "-q", *options, "-o", profile, "--", *command],
                   check=True, stdout=subprocess.DEVNULL)
    report = subprocess.run([SHADOWPROF, "report", "--top", "100", profile], check=True,
                            capture_output=True, text=True, env=os.environ | {"COLUMNS": "400"}).stdout
    begin = report.index("\nOpportunities ")
    # Where there were too few samples, no tables follow.
    section = report[begin:].partition("\nHot functions ")[0].partition("\nAbout this profile")[0]
    found = re.findall(r"^ +[\d.>]+ %.*\[([a-z-]+)\]\n +(?:.*? )?([\w.]+:\d+|\S+): ", section, re.M)
    if len(found) != len(re.findall(r"%.*\[[a-z-]+\]$", section, re.M)):
        sys.exit(f"FAILED: the report is not understood:\n{section}")
    return found, section


def planted(source):
    with open(source, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if match := re.search(r"// PLANTED ([a-z-]+)", line):
                yield match[1], number


def main(source, planted_program, unremarkable_program):
    with tempfile.TemporaryDirectory(prefix="shadowprof-test-") as folder:
        found, section = findings([planted_program], ["--mode", "full"], folder)
        ranks = []
        for kind, line in planted(source):
            places = [(kind, f"{os.path.basename(source)}:{n}") for n in (line, line + 1)]
            at = [i for i, f in enumerate(found) if f in places]
            if not at:
                sys.exit(f"FAILED: {kind} of line {line} was not found:\n{section}")
            ranks.append(at[0])
        if sorted(ranks) != list(range(len(ranks))):
            sys.exit(f"FAILED: something that was not planted is ranked above what was:\n{section}")
        if len(set(kind for kind, _ in planted(source))) < 9:
            sys.exit("FAILED: not every kind is planted")
        found, section = findings([unremarkable_program], ["--mode", "full"], folder)
        if found:
            sys.exit(f"FAILED: found where there is nothing:\n{section}")


if __name__ == "__main__":
    main(*sys.argv[1:])
