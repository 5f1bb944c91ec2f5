"""Profiles the programs of bench/findings in mode full, where every count is exact, and there is no clock: each opportunity
that is planted must be found, and none of these kinds elsewhere. Arguments: the folder of the sources, the programs."""

import os
import sys
import tempfile

from check_opportunities import findings, planted

ROUNDS = {"by_value": 20000, "looked_up": 600000, "spinning": 30, "powers": 200000, "by_reference": 20000, "in_order": 20}


def main(folder, *programs):
    sources = {name: os.path.join(folder, name + ".cpp") for name in ROUNDS}
    kinds = {kind for source in sources.values() for kind, _ in planted(source)}
    with tempfile.TemporaryDirectory(prefix="shadowprof-test-") as scratch:
        for program in programs:
            name = os.path.basename(program).removeprefix("planted-")
            found, section = findings([program, str(ROUNDS[name])], ["--mode", "full"], scratch)
            expected = set()
            for kind, line in planted(sources[name]):
                places = {(kind, f"{name}.cpp:{n}") for n in (line, line + 1)}
                if not places & set(found):
                    sys.exit(f"FAILED: {kind} of line {line} of {name} was not found:\n{section}")
                expected |= places
            others = {(kind, place) for kind, place in found if kind in kinds} - expected
            # The main thread of that one waits, too.
            if others and name != "spinning":
                sys.exit(f"FAILED: found in {name}, though not planted: {others}\n{section}")


if __name__ == "__main__":
    main(*sys.argv[1:])
