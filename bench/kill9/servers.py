"""kill -9 of shadowprof at random moments of a session, in the mode MODE (burst), with programs that
one would not like to lose: redis-server under load, nodejs, a program of 64 computing threads. Each
is attached to and bereft of its profiler ROUNDS times (50). After every kill nobody traces the
program, none of its threads stands still, it makes progress, and its results are right; at the end
it has received no wrong result and ends as it would have.

servers.py SPINNERS_OF_64_THREADS"""

import contextlib
import os
import random
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tests/programs"))
from vocabulary import (  # noqa: E402
    SHADOWPROF,
    check,
    check_equal,
    check_left_alone,
    scratch,
    start,
    stop,
    wait_until,
)

SPINNERS = os.path.abspath(sys.argv[1])
ROUNDS = int(os.environ.get("ROUNDS", "50"))
MODE = os.environ.get("MODE", "burst")
OPTIONS = ["-m", MODE, "--overhead", "30%", "--no-progress", "-q", "-o", "profile.json"]


class Redis:
    """redis-server; redis-benchmark keeps it busy, and a client of ours knows each answer."""

    def __init__(self):
        self.server = start(
            ["redis-server", "--port", "0", "--unixsocket", "redis", "--save", "", "--appendonly", "no"],
            stdout=subprocess.DEVNULL,
        )
        wait_until(lambda: os.path.exists("redis"), "redis-server does not listen")
        self.load = start(
            ["redis-benchmark", "-s", "redis", "-l", "-q", "-c", "20", "-P", "4", "-n", "100000",
             "-r", "10000", "-t", "set,get,incr,lpush,lpop,zadd,hset"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.pid = self.server.pid
        self.answers = 0
        self.wrong = None
        self.ending = False
        self.client = threading.Thread(target=self.ask)
        self.client.start()

    def ask(self):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30)
            connection.connect("redis")
            stream = connection.makefile("rwb", buffering=0)
            while not self.ending and not self.wrong:
                value = random.randbytes(random.randrange(1, 3000)).hex().encode()
                try:
                    for line, answers in (
                        (b"SET mine " + value, [b"+OK"]),
                        (b"GET mine", [b"$%d" % len(value), value]),
                        (b"APPEND mine x", [b":%d" % (len(value) + 1)]),
                    ):
                        stream.write(line + b"\r\n")
                        for expected in answers:
                            answer = stream.readline().rstrip(b"\r\n")
                            if answer != expected:
                                self.wrong = f"{answer!r} instead of {expected!r}"
                except OSError as error:
                    self.wrong = str(error)
                self.answers += 1

    def progress(self):
        check_equal("the clients' trouble", self.wrong, None)
        check_equal("the end of redis-benchmark", self.load.poll(), None)
        return self.answers

    def end(self):
        self.ending = True
        self.client.join(60)
        stop(self.load)
        self.server.terminate()
        check_equal("redis-server's exit status", self.server.wait(60), 0)
        check_equal("the clients' trouble", self.wrong, None)

    def kill(self):
        self.ending = True
        stop(self.load)
        stop(self.server)


class Nodejs:
    """Objects, compiled code and garbage whose sum is the same every time; told on each line."""

    PROGRAM = """
function round() {
  let sum = 0;
  for (let i = 0; i < 3000; ++i) {
    const people = Array.from({length: 20}, (_, n) => ({name: 'n' + (n * 7919 + i) % 97, age: n % 7}));
    people.sort((a, b) => a.name < b.name ? -1 : 1);
    const back = JSON.parse(JSON.stringify(new Map([...people.entries()]).get(3)));
    sum += back.age * people.length + Math.round(Math.sin(i) * 1000);
    if (i % 500 == 0) sum += new Function('a', 'return a.length + ' + i)(people);
  }
  return sum;
}
process.stdin.on('data', () => {}).on('end', () => process.exit(0));
function next() { process.stdout.write(round() + '\\n'); setImmediate(next); }
next();
"""

    def __init__(self):
        self.process = subprocess.Popen(
            ["nodejs", "-e", self.PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.pid = self.process.pid
        self.lines = 0
        self.seen = set()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.seen.add(line)
            self.lines += 1

    def progress(self):
        check(len(self.seen) <= 1, f"it computes different results: {self.seen}")
        check_equal("its end", self.process.poll(), None)
        return self.lines

    def end(self):
        self.process.stdin.close()
        check_equal("its exit status", self.process.wait(60), 0)
        self.reader.join(60)
        check_equal("the number of its results", len(self.seen), 1)

    def kill(self):
        stop(self.process)


class Spinners:
    """64 threads; every one of them must make progress."""

    def __init__(self):
        self.process = start([SPINNERS, "64", "counters"])
        self.pid = self.process.pid
        wait_until(lambda: os.path.exists("counters") and self.counters(), "it does not start")

    def counters(self):
        with open("counters", "rb") as file:
            content = file.read()
        return [int.from_bytes(content[i : i + 8], "little") for i in range(0, len(content), 64)]

    def progress(self):
        check_equal("its end", self.process.poll(), None)
        return min(self.counters(), default=0)

    def end(self):
        self.process.terminate()
        check_equal("its exit status", self.process.wait(60), -15)

    def kill(self):
        stop(self.process)


def memory_of(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return {line.split()[-1] for line in maps if " r-xp " in line and "/" in line}


def kill_again_and_again(make):
    target = make()
    try:
        wait_until(lambda: target.progress() > 0, "it makes no progress")
        code = memory_of(target.pid)
        for _ in range(ROUNDS):
            profiler = start([SHADOWPROF, "attach", *OPTIONS, str(target.pid)], stderr=subprocess.DEVNULL)
            time.sleep(random.uniform(0, 0.3))
            stop(profiler)
            check_left_alone(target.pid)
            before = target.progress()
            wait_until(lambda: target.progress() > before, "it makes no progress any more")  # noqa: B023
        check_equal("its files that are mapped executable", memory_of(target.pid), code)
        target.end()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            target.kill()
        raise


seed = random.randrange(1 << 32)
print(f"seed {seed}, {ROUNDS} rounds")
random.seed(seed)
for kind in (Redis, Nodejs, Spinners):
    with scratch():
        kill_again_and_again(kind)
    print(f"{kind.__name__.lower()}: unharmed", flush=True)
