"""The programs of this bench: how each is made and what it is told to do, so that it takes about the wanted number of
seconds on this machine, and the same in every run. What is known of one is kept in a folder of its own."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "accuracy"))
from common import profile, run  # noqa: E402
from judging import load  # noqa: E402
from workloads import workloads  # noqa: E402

SINES = 'BEGIN {{ for (i = 0; i < {0}; ++i) {{ s += sin(i) * cos(i / 3); if (i % 8 == 0) t = substr(i "abc" t, 1, 20) }} print s, t }}'
SPHERES = os.path.join(os.path.dirname(HERE), "demo", "spheres.cpp")
TYPES = "path,edge,call,method,value"
PROBE = 0.1  # seconds of what a program is tried with first, about


def _compiled(folder, source, compiler, *options):
    program = os.path.join(folder, os.path.splitext(os.path.basename(source))[0])
    subprocess.run([compiler, "-O2", "-g", *options, "-o", program, source], check=True)
    return program


def _mixture(milliseconds, threads=1):
    def make(folder, seconds):
        program = _compiled(folder, os.path.join(HERE, "mixture.c"), "gcc", "-pthread")
        phases = max(4, round(seconds * 1000 / milliseconds / threads))
        return [program, str(milliseconds), str(phases), str(threads)]

    return make


def _spheres(folder, seconds):
    return [_compiled(folder, SPHERES, "g++", "-std=c++20"), str(round(400 * seconds))]


def _gawk(_, seconds):
    return ["gawk", SINES.format(round(4e6 * seconds))]


def _ordinary(name, *changes):
    def make(folder, seconds):
        command = workloads(folder, seconds / 10)[name]()
        return [dict(changes).get(word, word) for word in command]

    return make


PROGRAMS = {
    "mixture-1": _mixture(1),
    "mixture-10": _mixture(10),
    "mixture-100": _mixture(100),
    "spheres": _spheres,
    "gawk": _gawk,
    **{name: _ordinary(name)
       for name in ("lua5.4", "python3", "sqlite3", "gzip", "xz", "zstd", "perl", "cc1")},
    "mixture-10x2": _mixture(10, 2),
    "zstd-x2": _ordinary("zstd", ("-T1", "-T2")),
    "xz-x2": _ordinary("xz", ("-T1", "-T2")),
}
# These keep both processors busy by themselves.
THREADED = [name for name in PROGRAMS if name.endswith("x2")]


class Program:
    def __init__(self, name, seconds, cache):
        self.name, self.seconds = name, seconds
        self.folder = os.path.join(cache, f"{name}-{seconds:g}s")
        self.perfect = os.path.join(self.folder, "perfect.json")
        self.facts = {}

    def prepare(self, shadowprof, again=False):
        """Makes what is missing of the command, the perfect profile and the time that it takes."""
        file = os.path.join(self.folder, "facts.json")
        if os.path.exists(file):
            self.facts = load(file)
        if again or not self.facts or self.facts.get("identity") != self._identity():
            shutil.rmtree(self.folder, ignore_errors=True)
            os.makedirs(self.folder)
            self.facts = {"command": self._command_of_length()}
            self.facts["identity"] = self._identity()
        if "instructions" not in self.facts:
            print(f"preparing {self.name}, {self.seconds:g} s", file=sys.stderr, flush=True)
            profile(shadowprof, ["-m", "full", "-p", TYPES, "--limit", "0"], self.facts["command"], self.perfect)
            self.facts["instructions"] = load(self.perfect)["coverage"]["instructions"]
        self._keep(file)

    def native(self, busy):
        """The processor time that it takes by itself: the lesser of two runs."""
        key = "native, busy" if busy else "native"
        if key not in self.facts:
            with neighbours(busy):
                self.facts[key] = min(run(self.facts["command"]) for _ in range(2))
            self._keep(os.path.join(self.folder, "facts.json"))
        return self.facts[key]

    def _keep(self, file):
        with open(file + ".new", "w", encoding="utf-8") as out:
            json.dump(self.facts, out, indent=1)
        os.replace(file + ".new", file)

    def _command_of_length(self):
        make = PROGRAMS[self.name]
        asked, wanted = PROBE * self.seconds, self.seconds * (2 if self.name in THREADED else 1)
        for _ in range(3):
            command = make(self.folder, asked)
            took = run(command)
            if 0.85 < took / wanted < 1.15:
                break
            asked *= wanted / took
        return command

    def _identity(self):
        """Of the program's file, of what it was made from, and of what it is told."""
        command = self.facts["command"]
        path = shutil.which(command[0])
        sources = [os.path.join(HERE, "mixture.c"), SPHERES] if command[0].startswith(self.folder) else []
        text = hashlib.sha256(json.dumps([command, TYPES]).encode())
        for name in [os.path.realpath(path), *sources] if path else []:
            with open(name, "rb") as file:
                text.update(file.read())
        return text.hexdigest()


class neighbours:
    """A busy loop on each processor, if there are to be any."""

    def __init__(self, busy):
        self.busy, self.loops = busy, []

    def __enter__(self):
        if self.busy:
            self.loops = [subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"])
                          for cpu in sorted(os.sched_getaffinity(0))]

    def __exit__(self, *_):
        for loop in self.loops:
            loop.kill()
            loop.wait()


def own_time_of(words):
    """Runs a profiler and its program. Returns the processor time of the profiler alone, in seconds."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0"}
    process = subprocess.Popen(["setarch", "-R", *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env=environment)
    try:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        # Until somebody waits for it, the kernel says what it used, apart from its children.
        with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait()
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, words)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
