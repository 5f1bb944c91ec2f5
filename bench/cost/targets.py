"""The programs whose slowdown is measured: how each is started, and how its progress is read without
its noticing (a shared file, mostly). And how shadowprof is attached to one."""

import array
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import servers  # noqa: E402

ON_EXIT = contextlib.ExitStack()


def start(command, **more):
    process = subprocess.Popen(
        command, **{"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **more}
    )

    def end():
        process.send_signal(signal.SIGKILL)
        process.wait()

    ON_EXIT.callback(end)
    return process


def attach(target, profile, options):
    command = [f"{options.build}/shadowprof", "attach", "-q", "--mode", options.mode, "-o", profile]
    profiler = subprocess.Popen([*command, *options.options.split(), str(target.pid)], stdin=subprocess.DEVNULL)
    ON_EXIT.callback(profiler.kill)
    return profiler


def detach(profiler):
    profiler.send_signal(signal.SIGINT)
    if profiler.wait() != 0:
        raise SystemExit("shadowprof failed")


class CountersInFile:
    """A program that keeps 64-bit counters in a file; `stride` of them lie between two used ones."""

    answers_itself = False  # computes an answer when it is asked for its progress

    def __init__(self, command, file, stride=1, maps_memory=False, many_threads=False):
        self.file = file
        self.maps_memory = maps_memory  # maps and unmaps memory all the time
        self.many_threads = many_threads  # when one is stopped another runs
        self.stride = stride
        with open(file, "wb") as empty:
            empty.write(bytes(8))
        self.pid = start(command).pid

    def progress(self):
        counters = array.array("Q")
        with open(self.file, "rb") as file:
            counters.frombytes(file.read())
        return sum(counters[:: self.stride])


class LinesInFile:
    """A program whose progress is the size of what it has written."""

    maps_memory = True
    many_threads = False
    answers_itself = False

    def __init__(self, command, file, stdin):
        self.file = file
        with open(file, "wb") as output:
            self.pid = start(command, stdin=stdin, stdout=output).pid

    def progress(self):
        return os.stat(self.file).st_size


class Reader:
    """A program that reads a large file. The kernel knows the position in it."""

    many_threads = False
    answers_itself = False
    maps_memory = False

    def __init__(self, command, file, megabytes):
        chance = random.Random(1)
        words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(5000)]
        picked = [words[int(len(words) * chance.random() ** 3)] for _ in range(4_000_000)]
        text = " ".join(picked).encode()
        with open(file, "wb") as output:
            for _ in range(1 + megabytes * 1_000_000 // len(text)):
                output.write(text)
        self.pid = start([*command, file]).pid

    def progress(self):
        with open(f"/proc/{self.pid}/io", encoding="ascii") as io:
            return int(io.read().split("rchar:")[1].split()[0])


class Nginx:
    """nginx's worker on a loopback port, with wrk keeping it busy; each has a processor."""

    maps_memory = False
    many_threads = False
    answers_itself = True

    def __init__(self, folder):
        self.port = servers.free_port()
        with open(f"{folder}/page.html", "w", encoding="ascii") as page:
            page.write("a page " * 500)
        command = servers.nginx(
            folder, self.port, f"root {folder}; location /status {{ stub_status; }}",
            http="gzip on; gzip_types *; gzip_comp_level 6;", processes="worker_processes 1")
        master = start(["taskset", "-c", "0", *command]).pid
        ON_EXIT.callback(lambda: os.kill(self.pid, signal.SIGKILL))
        deadline = time.monotonic() + 10
        while True:
            with open(f"/proc/{master}/task/{master}/children", encoding="ascii") as children:
                workers = children.read().split()
            if workers:
                break
            if time.monotonic() > deadline:
                raise SystemExit("nginx does not start")
            time.sleep(0.05)
        self.pid = int(workers[0])
        start(["taskset", "-c", "1", "wrk", "-t1", "-c8", "-d100000", "-H", "Accept-Encoding: gzip",
               f"http://127.0.0.1:{self.port}/page.html"])  # fmt: skip

    def progress(self):
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(b"GET /status HTTP/1.0\r\n\r\n")
            answer = b""
            while more := connection.recv(65536):
                answer += more
        # server accepts handled requests / 8 8 123
        return int(answer.split(b"requests")[1].split()[2])


class Redis:
    """redis-server on a loopback port, with redis-benchmark keeping it busy. Each has a processor:
    where they share, the throughput depends most on how the scheduler places them."""

    maps_memory = False
    many_threads = False
    answers_itself = True

    def __init__(self, *benchmark_options):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.pid = start(
            ["taskset", "-c", "0", "redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
             "--appendonly", "no"]
        ).pid  # fmt: skip
        deadline = time.monotonic() + 10
        while True:
            try:
                self.connection = socket.create_connection(("127.0.0.1", port))
                break
            except ConnectionRefusedError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        start(
            ["taskset", "-c", "1", "redis-benchmark", "-p", str(port), "-t", "get", "-r", "100000", "-n", "2000000000",
             "-q", *benchmark_options]
        )  # fmt: skip

    def progress(self):
        self.connection.sendall(b"INFO stats\r\n")
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += self.connection.recv(65536)
        return int(answer.split(b"total_commands_processed:")[1].split(b"\r\n")[0])


NODE = """
const fs = require('fs'), file = fs.openSync(process.argv[1], 'r+');
const counter = Buffer.alloc(8);
for (let done = 1n;; ++done) {
  const people = [];
  for (let i = 0; i < 100; ++i) people.push({name: 'n' + (i * 7919 % 100), age: i % 50});
  people.sort((a, b) => a.name < b.name ? -1 : 1);
  const byAge = new Map();
  for (const p of people) byAge.set(p.age, (byAge.get(p.age) || '') + p.name);
  JSON.parse(JSON.stringify([...byAge]));
  counter.writeBigUInt64LE(done);
  fs.writeSync(file, counter, 0, 8, 0);
}
"""

PYTHON = """
import mmap, re, struct, sys
file = open(sys.argv[1], 'r+b')
counter = mmap.mmap(file.fileno(), 8)
done = 0
while True:
    words = {}
    for i in range(200):
        word = 'w%d' % (i * 7919 % 100)
        words[word] = words.get(word, 0) + i
    text = ','.join('%s=%d' % item for item in sorted(words.items()))
    assert len(re.findall(r'w\\d+', text)) == 100
    done += 1
    counter[:] = struct.pack('<Q', done)
"""

PERL = """
open my $file, '+<', $ARGV[0] or die;
for (my $done = 1;; ++$done) {
  my (%h, $s);
  for my $i (1..300) { $h{'k' . ($i * 7919 % 97)} .= "x$i "; $s += ($i * 7) % 13; }
  my $n = 0;
  for (sort keys %h) { $n += length $h{$_} if /7/ }
  sysseek $file, 0, 0;
  syswrite $file, pack('Q', $done), 8;
}
"""

SQL = "SELECT printf('%64d', sum((x * 7919) % 1013)) FROM (SELECT x FROM t WHERE y LIKE '%7%' ORDER BY y LIMIT 50);"
TABLE = """CREATE TABLE t(x INTEGER, y TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
INSERT INTO t SELECT i, 'row ' || (i * 7919 % 1000) FROM n;"""


def spinners(threads, folder, build):
    file = f"{folder}/counters"
    program = f"{build}/bench/cost/spinners"
    command = [program, str(threads), file]
    return CountersInFile(command, file, stride=8, many_threads=threads > os.cpu_count())


def nodejs(folder, _):
    file = f"{folder}/counter"
    return CountersInFile(["nodejs", "-e", NODE, file], file, maps_memory=True)


def python3(folder, _):
    file = f"{folder}/counter"
    return CountersInFile(["/usr/bin/python3", "-c", PYTHON, file], file, maps_memory=True)


def perl(folder, _):
    file = f"{folder}/counter"
    return CountersInFile(["perl", "-e", PERL, file], file, maps_memory=True)


def sqlite3(folder, _):
    queries = start(["yes", SQL], stdout=subprocess.PIPE)
    # Each query flushes its line of output.
    command = ["stdbuf", "-oL", "sqlite3", "-cmd", TABLE, ":memory:"]
    return LinesInFile(command, f"{folder}/results", queries.stdout)


TARGETS = {
    "one-thread": lambda folder, build: spinners(1, folder, build),
    "64-threads": lambda folder, build: spinners(64, folder, build),
    "redis": lambda folder, build: Redis(),
    "redis-pipelined": lambda folder, build: Redis("-P", "16"),
    "nodejs": nodejs,
    "python3": python3,
    "perl": perl,
    "sqlite3": sqlite3,
    "bzip2": lambda folder, _: Reader(["bzip2", "-c"], f"{folder}/text", 2500),
    # Blocks of 100 kB take seven milliseconds each; those of the default size take 80.
    "bzip2-1": lambda folder, _: Reader(["bzip2", "-1", "-c"], f"{folder}/text", 2500),
    "xz": lambda folder, _: Reader(["xz", "-T1", "-1", "-c"], f"{folder}/text", 4000),
    "nginx": lambda folder, _: Nginx(folder),
}
