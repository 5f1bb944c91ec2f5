#!/usr/bin/env python3
"""How much longer do a server's slowest answers take while it is profiled?

    bench/tail/run.py [--build DIR] [--rounds N] [--seconds S] [--rate R] [--json FILE] [SERVER...]

redis-server, nginx and postgres answer requests that come at random times, a given number a second (postgres, by
pgbench -S, a fifth of that): choose half of what they can do, or less. In each round come a stretch without
shadowprof, one for each way of profiling, and one without again, so that the machine's own changes show. Printed are
medians over the rounds of the 50th, 99th and 99.9th percentile in microseconds, and of their ratios to the stretches
without just before and after. "beside" compares these two with each other. Servers that are not installed are left
out, and said to be."""

import argparse
import glob
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import servers  # noqa: E402

PERCENTILES = ("p50", "p99", "p99.9")
WINDOWS = (("2ms", "4s"), ("1ms", "1s"), ("2ms", "1s"), ("4ms", "1s"), ("2ms", "250ms"))


def ways():
    found = {"auto": [], "instant": ["-m", "instant"], "burst": ["-m", "burst"]}
    for length, period in WINDOWS:
        found[f"{length}/{period}"] = ["-m", "instant", "--all-threads", "--sample-size", length, "--period", period,
                                       "--overhead", "50%"]
    return found


def redis(folder, port):
    return ["redis-server", "--port", str(port), "--save", "", "--dir", folder], "redis"


def nginx(folder, port):
    return servers.nginx(folder, port, 'keepalive_requests 1000000000; location / { return 200 "hello"; }'), "http"


class Server:
    """One that client.c speaks to."""

    def __init__(self, make, folder):
        self.port = servers.free_port()
        command, self.protocol = make(folder, self.port)
        self.process = subprocess.Popen(command, **servers.QUIET)
        servers.await_answer(self.port)

    def stretch(self, client, options):
        """The percentiles of so many seconds."""
        done = subprocess.run([client, str(self.port), str(options.rate), str(options.seconds), "8", self.protocol],
                              stdout=subprocess.PIPE, check=True, text=True)
        return [float(word) for word in done.stdout.split()[1:]]

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


class Postgres(Server):
    """Each stretch connects anew: its processes are children that shadowprof follows."""

    def __init__(self, folder):
        self.server = servers.Postgres(folder, servers.free_port())
        self.process = subprocess.Popen(self.server.command(), **servers.QUIET)
        self.server.await_ready()
        self.server.pgbench("-i", "-s", "5", "-q")

    def stretch(self, client, options):
        logs = os.path.join(self.server.folder, "log.*")
        for old in glob.glob(logs):
            os.remove(old)
        self.server.pgbench("-S", "-n", "-c", "4", "-T", str(round(options.seconds)), "-R", str(options.rate // 5),
                            "-l", "--log-prefix", logs.removesuffix(".*"))
        took = []
        for log in glob.glob(logs):
            with open(log, encoding="ascii") as file:
                took += [int(line.split()[2]) for line in file]  # since it was due
        took.sort()
        return [took[int(len(took) * part)] for part in (0.5, 0.99, 0.999)]


SERVERS = {"redis-server": lambda folder: Server(redis, folder), "nginx": lambda folder: Server(nginx, folder),
           "postgres": Postgres}


def is_installed(name):
    return servers.Postgres.tools if name == "postgres" else shutil.which(name)


def profiled(server, client, options, words, output):
    profiler = subprocess.Popen(
        [os.path.join(options.build, "shadowprof"), "attach", "-q", "-o", output, *words, str(server.process.pid)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1)  # what is done once is not what a user waits for
    took = server.stretch(client, options)
    profiler.terminate()
    profiler.wait()
    with open(output, encoding="utf-8") as file:
        profile = json.load(file)
    return took, profile["coverage"]["samples"], profile["cost"].get("slowdown")


def measure(name, client, options):
    rows = {way: [] for way in options.ways}
    beside, samples, costs = [], {}, {}
    with tempfile.TemporaryDirectory(prefix="bench-tail-") as folder:
        server = SERVERS[name](folder)
        output = os.path.join(folder, "profile.json")
        server.stretch(client, options)
        for _ in range(options.rounds):
            before = server.stretch(client, options)
            for way in options.ways:
                took, taken, cost = profiled(server, client, options, ways()[way], output)
                after = server.stretch(client, options)
                rows[way].append((took, [2 * t / (a + b) for t, a, b in zip(took, before, after)]))
                beside.append((before, [b / a for a, b in zip(before, after)]))
                samples.setdefault(way, []).append(taken)
                costs.setdefault(way, []).append(cost or 0)
                before = after
        server.stop()
    rows["beside"] = beside
    table = {}
    for way, measured in rows.items():
        table[way] = {p: [statistics.median(m[part][n] for m in measured) for part in (0, 1)]
                      for n, p in enumerate(PERCENTILES)}
        print(f"{name:12} {way:10}" + "".join(f" {table[way][p][0]:8.0f} {table[way][p][1]:6.3f}x" for p in PERCENTILES)
              + (f"  {statistics.median(samples[way]):5.0f} {100 * statistics.median(costs[way]):5.2f} %"
                 if way in samples else ""), flush=True)
    return table


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--ways", type=lambda text: text.split(","), default=["auto", "burst"],
                        help=f"of {', '.join(ways())}, or all")
    parser.add_argument("--json", help="writes the figures there")
    parser.add_argument("servers", nargs="*")
    options = parser.parse_args()
    if options.ways == ["all"]:
        options.ways = list(ways())
    table = {}
    with tempfile.TemporaryDirectory(prefix="bench-tail-client-") as folder:
        client = os.path.join(folder, "client")
        subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-o", client, f"{HERE}/client.c", "-lm"], check=True)
        print(f"{'server':12} {'way':10}" + "".join(f" {p:>8} {'ratio':>7}" for p in PERCENTILES)
              + f"  {'samples':>5} {'cost':>5}")
        for name in options.servers or SERVERS:
            if not is_installed(name):
                print(f"{name} is not installed")
                continue
            table[name] = measure(name, client, options)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
