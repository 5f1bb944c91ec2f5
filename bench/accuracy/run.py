#!/usr/bin/env python3
"""How accurate are sampled profiles, and what do they cost? Makes docs/results/accuracy.*.

    bench/accuracy/run.py [--build DIR] [--out STEM] [--scale X] [--grid-scale X] [--only SET]... \\
                          [--config NAME]... [PROGRAM...]

Runs every program natively, once in mode full, which yields the perfect profile, and with each of the
configurations, and compares. Five sets of them:

    defaults   the sampled modes as they come, on all programs (--scale: at 1 they run for some ten
               seconds)
    grid       sample sizes 1M, 10M and 100M at loads 0.0625 to 1, as the shadow-profiling paper has
               them, and
    bursts     burst lengths at several budgets; both on a few programs, at --grid-scale
    streams    hot data streams in the sampled modes, at --grid-scale
    windows    duration and period as the paper on instant profiling has them, on all programs at --scale

Columns: accuracy of paths and edges, Diff-Top, overlaps of calls, methods and streams (`shadowprof compare` and
its manual say what they are); how many of the shares of at least 2 % are within their intervals; coverage; the
slowdown that the profile itself states; extra CPU, the processor time of everything over that of the program alone;
page faults a second that the program has because of replicas.

Figures are written to STEM.json after each run, and a later call goes on where one was stopped (--again
begins anew). At the end come STEM.md and plots, STEM-*.svg.

What a program does differently from run to run is no error of sampling: addresses and hash seeds are
fixed for all runs.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile

from common import machine, profile, run
from intervals import LEAST_SHARE
from judging import compare, load, shares
from plots import bars, lines
from workloads import drive, workloads

SIZES, LOADS = ["1M", "10M", "100M"], ["0.0625", "0.125", "0.25", "0.5", "1"]
GRID_PROGRAMS = ["gzip", "sqlite3", "lua5.4"]
# The budget does not limit replicas whose load is given.
ON_ALL = ("defaults", "windows")
SETS = {
    "defaults": {mode: f"-m {mode}" for mode in ("auto", "instant", "shadow", "burst")},
    "grid": {f"{size} at {load}": f"-m shadow --sample-size {size} --load {load} --overhead 50%"
             for size in SIZES for load in LOADS},
    "bursts": {f"{size} at {budget}": f"-m burst --sample-size {size} --overhead {budget}"
               for size in ("500", "5k", "50k") for budget in ("0.2%", "1%", "5%")},
    "streams": {mode: f"-m {mode} -p stream" for mode in ("auto", "instant", "shadow")},
    "windows": {f"{size}/{period}": f"-m instant --all-threads --sample-size {size} --period {period} --overhead 100%"
                for size, period in (("2ms", "4s"), ("1ms", "1s"), ("2ms", "1s"), ("4ms", "1s"), ("2ms", "250ms"))},
}
MEASURES = ["path", "edge", "Diff-Top", "call", "method", "stream", "within", "coverage", "slowdown", "extra CPU",
            "faults/s"]
FINE = ("Diff-Top", "slowdown", "coverage")
PAPERS = """The papers' figures (SPEC CPU2000 and other programs, other machines): shadow profiling has a path
accuracy of 83–93 % on average, 93 % at 100M and 0.25 for about 1 % of overhead and a coverage of 0.2 %, Diff-Top
4–8 %, its worst slowdown 20 %; instant profiling has an edge accuracy of 67–81 % on average at a slowdown of 1.4–5.9 %
and 0.6–2.9 % of extra CPU; HPS has overlaps of calls and methods of 90 % at 0.2 %.
"""


def figures_of(shadowprof, sampled, perfect):
    whole = load(sampled)
    figures = compare(shadowprof, sampled, perfect)
    figures["slowdown"] = whole["cost"].get("slowdown")
    figures["faults/s"] = whole["cost"].get("extra_faults", 0) / whole["run"]["duration"]
    estimates = shares(sampled)[0]
    # Each: kind, truth, estimate, its interval; of what was not seen it is empty.
    figures["shares"] = [[key[0], truth, *estimates.get(key, (0, 0, 0))]
                         for key, (truth, *_) in shares(perfect)[0].items() if truth >= LEAST_SHARE]
    held = [low <= truth <= high for _, truth, _, low, high in figures["shares"]]
    figures["within"] = statistics.fmean(held) if held else None
    figures["samples"] = whole["coverage"]["samples"]
    figures["ended"] = whole["coverage"]["ended"]
    figures["seconds"] = whole["run"]["duration"]
    figures["warnings"] = whole["run"].get("warnings", [])
    return figures


def shown(measure, value):
    if value is None:
        return "-"
    if measure == "faults/s":
        return f"{value:.0f}"
    return f"{value * 100:.{2 if measure in FINE else 1}f} %"


def median(rows, measure):
    known = [row[measure] for row in rows if row.get(measure) is not None]
    return statistics.median(known) if known else None


def table(first, rows, ends=()):
    """rows: {name: figures}"""
    text = [f"| {first} | samples | {' | '.join(MEASURES)} |", "|---|--:|" + "--:|" * len(MEASURES)]
    for name, figures in rows.items():
        cells = " | ".join(shown(m, figures.get(m)) for m in MEASURES)
        text.append(f"| {name} | {figures['samples']:.0f} | {cells} |")
    for name, pick in ends:
        picked = {m: pick(m, [r[m] for r in rows.values() if r.get(m) is not None]) for m in MEASURES}
        text.append(f"| **{name}** | | " + " | ".join(shown(m, picked[m]) for m in MEASURES) + " |")
    return "\n".join(text) + "\n"


def worst(measure, values):
    if not values or measure == "coverage":
        return None
    return min(values) if measure in ("path", "edge", "call", "method", "stream", "within") else max(values)


class Bench:
    def __init__(self, options):
        self.options = options
        self.shadowprof = os.path.join(options.build, "shadowprof")
        self.done = {"machine": machine(), "results": {}}
        if not options.again and os.path.exists(options.out + ".json"):
            with open(options.out + ".json", encoding="utf-8") as file:
                self.done = json.load(file)

    def save(self):
        with open(self.options.out + ".json.new", "w", encoding="utf-8") as file:
            json.dump(self.done, file, indent=1, sort_keys=True)
            file.write("\n")
        os.replace(self.options.out + ".json.new", self.options.out + ".json")

    def run(self):
        for name in self.options.only or SETS:
            scale = self.options.scale if name in ON_ALL else self.options.grid_scale
            with tempfile.TemporaryDirectory(prefix="bench-accuracy-") as folder:
                for program, make in workloads(folder, scale).items():
                    chosen = self.options.programs or (None if name in ON_ALL else GRID_PROGRAMS)
                    if chosen is None or program in chosen:
                        self.run_program(name, program, make, folder, scale)

    def run_program(self, name, program, make, folder, scale):
        results = self.done["results"].setdefault(name, {})
        missing = {config: text for config, text in SETS[name].items()
                   if program not in results.get(config, {}) and config in (self.options.config or SETS[name])}
        if not missing:
            return
        perfect, sampled = os.path.join(folder, "perfect.json"), os.path.join(folder, "sampled.json")
        command = make()
        requests = drive(program, folder, scale)
        try:
            native = run(command, requests)
            types = ["-p", "stream" if name == "streams" else "path,edge,call,method,value"]
            profile(self.shadowprof, ["-m", "full", *types, "--limit", "0"], command, perfect, requests)
        except subprocess.CalledProcessError as error:
            print(f"{program:10} {error}", flush=True)
            return
        for config, text in missing.items():
            try:
                all_of_it = profile(self.shadowprof, [*shlex.split(text), "--limit", "0"], command, sampled,
                                    requests)
                figures = figures_of(self.shadowprof, sampled, perfect)
            except subprocess.CalledProcessError as error:
                print(f"{program:10} {config:14} {error}", flush=True)
                continue
            figures["extra CPU"] = all_of_it / native - 1
            figures["native CPU"] = native
            results.setdefault(config, {})[program] = figures
            self.save()
            print(f"{program:10} {config:14} {figures['samples']:6.0f} samples  "
                  + "  ".join(f"{m} {shown(m, figures[m])}" for m in MEASURES), flush=True)

    def write(self):
        results = self.done["results"]
        text = (f"# Accuracy\n\nEach program ran natively, once in mode full, for the perfect profile, and with each "
                f"configuration. What the figures mean: bench/accuracy/run.py.\n\n"
                f"Measured on: {self.done['machine']}.\n\n"
                f"Made by: `{shlex.join(['bench/accuracy/run.py', *sys.argv[1:]])}`\n\n{PAPERS}\n")
        for config, rows in results.get("defaults", {}).items():
            ends = [("median", lambda _, values: statistics.median(values) if values else None), ("worst", worst)]
            text += f"## Defaults: `{SETS['defaults'][config]}`\n\n{table('program', rows, ends)}\n"
        if "defaults" in results:
            bars(self.options.out + "-defaults.svg", "Path accuracy (%), defaults",
                 {config: {program: 100 * row["path"] for program, row in rows.items()
                           if row.get("path") is not None}
                  for config, rows in results["defaults"].items()})
            text += f"![path accuracy by program]({os.path.basename(self.options.out)}-defaults.svg)\n\n"
        for name, what in (("grid", "Sample size and load"), ("bursts", "Burst length and budget")):
            if name not in results:
                continue
            rows = results[name]
            programs = sorted({program for of_config in rows.values() for program in of_config})
            medians = {config: {m: median(list(rows[config].values()), m) for m in [*MEASURES, "samples"]}
                       for config in SETS[name] if config in rows}
            text += f"## {what}: medians of {', '.join(programs)}\n\n{table('configuration', medians)}\n"
            for measure in ("path", "slowdown"):
                curves = {}
                for config, figures in medians.items():
                    size, at = config.split(" at ")
                    if figures[measure] is not None:
                        curves.setdefault(size, []).append((float(at.rstrip("%")), 100 * figures[measure]))
                file = f"{self.options.out}-{name}-{measure}.svg"
                lines(file, f"{measure} (%) by {'load' if name == 'grid' else 'budget (%)'}", curves)
                text += f"![{measure}]({os.path.basename(file)})\n"
            text += "\n"
        if "streams" in results:
            for config, rows in results["streams"].items():
                text += f"## Hot data streams: `{SETS['streams'][config]}`\n\n{table('program', rows)}\n"
        if "windows" in results:
            rows = {config: {m: median(list(of_config.values()), m) for m in [*MEASURES, "samples"]}
                    for config, of_config in results["windows"].items()}
            text += f"## Duration/period of windows in place: medians\n\n{table('window', rows)}\n"
        with open(self.options.out + ".md", "w", encoding="utf-8") as file:
            file.write(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--out", default="accuracy")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--grid-scale", type=float, default=0.5)
    parser.add_argument("--only", action="append", choices=list(SETS))
    parser.add_argument("--config", action="append", help="of the sets' configurations only this one")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("programs", nargs="*")
    bench = Bench(parser.parse_args())
    bench.run()
    bench.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
