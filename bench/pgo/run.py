#!/usr/bin/env python3
"""What shadowprof's profiles are worth to compilers: a program optimised by them, beside the same
program optimised by exhaustive profiles.

    bench/pgo/run.py build   FOLDER SHADOWPROF PROGRAM SOURCE    PROGRAM: lua or sqlite; resumes
    bench/pgo/run.py measure FOLDER [--rounds N]                 may be repeated: rounds add up
    bench/pgo/run.py table   FOLDER...

SOURCE is what `apt-get source lua5.4` leaves, or a folder with sqlite3.c, sqlite3.h and shell.c.

The variants, all by clang -O2:
  plain           as it is
  bolt full       llvm-bolt by edges of mode full
  bolt sampled    llvm-bolt by edges of mode shadow (or --sampled burst) at 1 % overhead
  bolt all        llvm-bolt by its own instrumentation
  clang full      -fprofile-sample-use, of edges of mode full
  clang sampled   -fprofile-sample-use, of edges of mode shadow (or burst) at 1 % overhead
  lines full      the same two by source lines and discriminators (export --format llvm)
  lines sampled
  clang all       -fprofile-use of -fprofile-generate
For `clang` the program that is profiled was compiled with -fpseudo-probe-for-profiling, by which clang
knows its blocks again, and llvm-profgen reads the edges (export --format llvm-profgen).
Training and measurement use different inputs. Runs of the variants alternate; what is compared is the
processor time of all rounds, with 95 % intervals by drawing rounds anew.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parent
CLANG = shutil.which("clang-16") or "clang"
# The runtime library is found beside the program, not beside a link to it.
BOLT = os.path.realpath(shutil.which("llvm-bolt-16") or shutil.which("llvm-bolt") or "llvm-bolt")
PROFGEN = shutil.which("llvm-profgen-16") or "llvm-profgen"
PROFDATA = shutil.which("llvm-profdata-16") or "llvm-profdata"
FLAGS = ["-O2", "-g", "-fdebug-info-for-profiling", "-fno-pie", "-no-pie", "-Wl,--emit-relocs", "-Wl,--build-id"]
PROBES = "-fpseudo-probe-for-profiling"
LAYOUT = ["-reorder-blocks=ext-tsp", "-reorder-functions=hfsort", "-split-functions", "-split-all-cold",
          "-icf=1", "-use-gnu-stack"]
DRAWS = 1000


def must(command, **more):
    done = subprocess.run([str(c) for c in command], check=False, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr


class Lua:
    def __init__(self, source):
        self.source = Path(source) / "src"
        self.files = [f for f in sorted(self.source.glob("*.c")) if f.name != "luac.c"]
        self.more = ["-DLUA_USE_POSIX", f"-I{self.source}", "-lm"]

    def command(self, binary, what):
        return [binary, HERE / "work.lua", {"train": "3", "long": "300", "measure": "15"}[what]]


class Sqlite:
    def __init__(self, source):
        self.files = [Path(source) / "sqlite3.c", Path(source) / "shell.c"]
        self.more = [f"-I{source}", "-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION", "-lm"]

    def command(self, binary, what):
        items, sales, factor, times = {"train": (8000, 60000, 3, 1), "long": (8000, 60000, 3, 200),
                                       "measure": (20000, 250000, 7, 1)}[what]
        sizes = [f".parameter set @{name} {value}"
                 for name, value in (("items", items), ("sales", sales), ("factor", factor))]
        once = [*sizes, f".read {HERE / 'work.sql'}", "DROP TABLE sale; DROP TABLE item;"]
        return [binary, "-batch", ":memory:", *once * times]


PROGRAMS = {"lua": Lua, "sqlite": Sqlite}


class Builder:
    def __init__(self, folder, shadowprof, program, sampled):
        self.folder, self.shadowprof, self.program, self.sampled = folder, shadowprof, program, sampled

    def compile(self, name, *flags):
        binary = self.folder / name
        if not binary.exists():
            must([CLANG, *FLAGS, *flags, "-o", binary, *self.program.files, *self.program.more])
        return binary

    def bolt(self, name, plain, fdata):
        if (self.folder / name).exists():
            return
        said = must([BOLT, plain, "-o", self.folder / name, "-data", fdata, *LAYOUT])
        for line in said.splitlines():
            if "non-empty execution profile" in line or "invalid" in line:
                print(f"{name}: {line}", flush=True)

    def shadowprof_edges(self, program, kind, forms):
        name = f"{program.name} {kind}"
        profile = self.folder / f"{name}.json"
        mode = "full" if kind == "full" else self.sampled
        if profile.exists():
            return
        # The same work for longer: 1 % of one second sees little.
        must([self.shadowprof, "run", "-q", "-m", mode, "-p", "edge", "--limit", "0", "-o", profile, "--",
              *self.program.command(program, "train" if kind == "full" else "long")])
        facts = json.loads(profile.read_text(encoding="utf-8"))
        print(f"{program.name}, mode {mode}: {facts['coverage']['samples']} samples, {facts['coverage']['instructions']} instructions, "
              f"cost {facts['cost'].get('slowdown')}", flush=True)
        for form in forms:
            must([self.shadowprof, "export", "--format", form, "-o", self.folder / f"{name}.{form}", profile])

    def build(self):
        plain = self.compile("plain")
        probed = self.compile("probed", PROBES)
        for kind in ("full", "sampled"):
            self.shadowprof_edges(plain, kind, ("bolt", "llvm"))
            self.bolt(f"bolt {kind}", plain, self.folder / f"plain {kind}.bolt")
            self.compile(f"lines {kind}", f"-fprofile-sample-use={self.folder / f'plain {kind}.llvm'}")
            self.shadowprof_edges(probed, kind, ("llvm-profgen",))
            samples = self.folder / f"{kind}.samples"
            must([PROFGEN, f"--binary={probed}", f"--unsymbolized-profile={self.folder / f'probed {kind}.llvm-profgen'}",
                  "--use-offset=0", f"--output={samples}"])
            self.compile(f"clang {kind}", PROBES, f"-fprofile-sample-use={samples}")
        must([BOLT, plain, "-o", self.folder / "instrumented", "-instrument",
              f"-instrumentation-file={self.folder / 'all.fdata'}"])
        must(self.program.command(self.folder / "instrumented", "train"))
        self.bolt("bolt all", plain, self.folder / "all.fdata")
        raw = self.folder / "all.profraw"
        generating = self.compile("generating", "-fprofile-generate")
        must(self.program.command(generating, "train"), env=dict(os.environ, LLVM_PROFILE_FILE=str(raw)))
        must([PROFDATA, "merge", "-o", self.folder / "all.profdata", raw])
        self.compile("clang all", f"-fprofile-use={self.folder / 'all.profdata'}", "-Wno-profile-instr-unprofiled")


VARIANTS = ("plain", "bolt full", "bolt sampled", "bolt all", "clang full", "clang sampled", "clang all", "lines full",
            "lines sampled")


def processor_time(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(folder, program, rounds):
    file = folder / "times.json"
    times = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    for number in range(rounds):
        order = VARIANTS[number % len(VARIANTS):] + VARIANTS[:number % len(VARIANTS)]
        times.append({v: processor_time(program.command(folder / v, "measure"))
                      for v in order if (folder / v).exists()})
        file.write_text(json.dumps(times), encoding="utf-8")


def gain(times, variant):
    """By how much faster than plain: of the sums over all rounds, for the mean of single rounds' ratios is
    too large by their variance."""
    return sum(t["plain"] for t in times) / sum(t[variant] for t in times) - 1


def with_interval(times, statistic):
    """Of all rounds; and the 95 % interval of what rounds drawn from them, with replacement, say."""
    random = Random(1)
    drawn = sorted(statistic(random.choices(times, k=len(times))) for _ in range(DRAWS))
    return statistic(times), drawn[int(0.025 * DRAWS)], drawn[int(0.975 * DRAWS)]


def in_words(value, low, high, form):
    return f"{value:{form}} ({low:{form}} … {high:{form}})"


def table(folders):
    print("| program | profile | llvm-bolt | of exhaustive | clang | of exhaustive | clang, by lines | of exhaustive |\n"
          "|---|---|--:|--:|--:|--:|--:|--:|")
    notes = []
    for folder in folders:
        times = json.loads((folder / "times.json").read_text(encoding="utf-8"))
        for kind, name in (("full", "mode `full`"), ("sampled", "samples, at 1 %"), ("all", "exhaustive")):
            cells = []
            for tool in ("bolt", "clang", "lines"):
                variant, best = f"{tool} {kind}", "bolt all" if tool == "bolt" else "clang all"
                known = [t for t in times if variant in t and best in t]
                if not known:
                    cells += ["", ""]
                    continue
                cells.append(in_words(*with_interval(known, lambda t: gain(t, variant)), "+.1%"))
                part = ""
                if kind != "all" and gain(known, best) > 0:
                    part = in_words(*with_interval(known, lambda t: gain(t, variant) / gain(t, best)), ".0%")
                cells.append(part)
            print(f"| {folder.name} | {name} | {' | '.join(cells)} |")
        notes.append(f"{folder.name}: {len(times)} rounds, plain {statistics.mean(t['plain'] for t in times):.2f} s")
    print("\n" + "\n".join(notes))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build")
    build.add_argument("folder", type=Path)
    build.add_argument("shadowprof", type=Path)
    build.add_argument("program", choices=PROGRAMS)
    build.add_argument("source", type=Path)
    build.add_argument("--sampled", choices=("shadow", "burst"), default="shadow")
    again = commands.add_parser("measure")
    again.add_argument("folder", type=Path)
    again.add_argument("--rounds", type=int, default=5)
    show = commands.add_parser("table")
    show.add_argument("folders", type=Path, nargs="+")
    options = parser.parse_args()
    if options.command == "build":
        options.folder.mkdir(parents=True, exist_ok=True)
        facts = {"program": options.program, "source": str(options.source.resolve())}
        (options.folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
        program = PROGRAMS[options.program](options.source.resolve())
        Builder(options.folder.resolve(), options.shadowprof.resolve(), program, options.sampled).build()
    elif options.command == "measure":
        facts = json.loads((options.folder / "facts.json").read_text(encoding="utf-8"))
        measure(options.folder.resolve(), PROGRAMS[facts["program"]](facts["source"]), options.rounds)
    else:
        table(options.folders)


main()
