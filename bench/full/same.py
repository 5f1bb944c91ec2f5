#!/usr/bin/env python3
"""Do programs do in mode full, or another, what they do natively?

    bench/full/same.py [--build DIR] [--mode MODE] [--options "..."] [--rounds N] [PROGRAM...]

Each program runs once natively and N times in the mode, for paths and edges and for everything by
turns: its output and exit status must be the same. In mode full nothing may have run unprofiled; in
others it is told how many samples there were, why they ended, and what the profile warns of. A table
at the end; exit status 1 if anything differed. Programs that are not installed are left out, and said.
Where a program prints times or rates, numbers are not compared. Servers are asked by a client, whose
output is compared.
"""

import argparse
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import servers  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
LONGEST = 900

PERL = r"""
my (%h, $s);
for my $i (1..200000) { $h{$i % 1009} .= chr(97 + $i % 26); $s += ($i * 7) % 13 }
my $n = 0; for (sort keys %h) { $n += () = $h{$_} =~ /a.?c/g } print "$s $n\n";
eval { die { code => 42 } }; print $@->{code}, "\n"; exit 6;
"""
LUA = """
local t, s = {}, 0
for i = 1, 2000000 do t[i % 1000 + 1] = (t[i % 1000 + 1] or 0) + i % 7 end
local co = coroutine.wrap(function() for i = 1, 50000 do coroutine.yield(i) end end)
for i = 1, 50000 do s = s + co() end
for i = 1, 20000 do local ok = pcall(error, {i}); if not ok then s = s + 1 end end
print(s, t[77], string.format('%.6f', math.sin(s))) os.exit(4)
"""
SQL = """
create table t(a integer primary key, b text, c real);
with recursive n(x) as (select 1 union all select x+1 from n where x<100000)
 insert into t select x, 'row ' || (x*7919 % 10007), x*0.5 from n;
create index i on t(b); select count(*), sum(c) from t where b like '%77%';
select b, count(*) from t group by b order by 2 desc, 1 limit 5;
"""
NODE = """
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
function work(n) {
  const seen = new Map(); let s = 0;
  for (let i = 0; i < n; ++i) {
    const o = { a: i % 7, b: 'k' + i % 513, c: [i, i * 2] };
    seen.set(o.b, (seen.get(o.b) || 0) + o.a + o.c[1]);
    try { if (i % 1000 == 0) throw new Error(o.b) } catch (e) { s += e.message.length }
    s = (s + /k(\\d+)/.exec(o.b)[1] * 3) % 1000003;
  }
  return [s, seen.size, JSON.stringify([...seen]).length];
}
if (isMainThread) {
  const workers = [1, 2].map(n => new Promise(done =>
    new Worker(__filename, { workerData: 20000 * n }).on('message', done)));
  Promise.all([...workers, Promise.resolve(work(100000))]).then(all => {
    console.log(JSON.stringify(all));
    console.log(require('zlib').gzipSync('x'.repeat(100000)).length);
    process.exitCode = 8;
  });
} else parentPort.postMessage(work(workerData));
"""
NGINX = """
worker_processes 1; daemon off; master_process {master}; pid {folder}/nginx.pid;
error_log {folder}/error.log; events {{ worker_connections 256; }}
http {{ access_log off; client_body_temp_path {folder}; proxy_temp_path {folder};
  fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder}; gzip on;
  gzip_types text/plain; default_type text/plain;
  server {{ listen 127.0.0.1:{port}; root {folder}/www; }} }}
"""


def without_numbers(text):
    return re.sub(rb"\s+", b" ", re.sub(rb"\d+(\.\d+)?", b"#", text))


def without_times(text):
    """What the test runner prints of the machine and the time; its addresses and random numbers. It
    tells of a test in a line of its own if it took long."""
    text = re.sub(rb"(?m)^test_\w+ passed in .*\n|(?<=failures\)) in .*|(?<=failure\)) in .*", b"", text)
    return re.sub(rb"(?m)^== .*$|(\d+(\.\d+)? ?(hour|min|sec|usec|ms|s)\b ?)+|load avg: \d+\.\d+"
                  rb"|\d:\d\d:\d\d|0x[0-9a-f]+|Using random seed \d+", b"#", text)


class Command:
    """A program that ends by itself."""

    def __init__(self, *command, normalise=None, stdin=None):
        self.command, self.normalise, self.stdin = list(command), normalise, stdin

    def run(self, prefix):
        with contextlib.ExitStack() as files:
            stdin = files.enter_context(open(self.stdin, "rb")) if self.stdin else subprocess.DEVNULL
            done = subprocess.run(prefix + self.command, stdin=stdin, capture_output=True,
                                  timeout=LONGEST, check=False)
        status = done.returncode if done.returncode >= 0 else 128 - done.returncode
        output = [done.stdout, done.stderr]
        return status, [self.normalise(text) if self.normalise else text for text in output]


class Server:
    """A program that `ask` queries, which returns what is to be compared. Then the program is ended."""

    def __init__(self, command, port, ask, farewell):
        self.command, self.port, self.ask, self.farewell = command, port, ask, farewell

    def run(self, prefix):
        server = subprocess.Popen(prefix + self.command, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            until = time.monotonic() + 60
            while True:
                try:
                    socket.create_connection(("127.0.0.1", self.port), 1).close()
                    break
                except OSError:
                    if time.monotonic() > until or server.poll() is not None:
                        raise
                    time.sleep(0.02)
            answers = self.ask()
            self.farewell(server)
            errors = server.communicate(timeout=LONGEST)[1]
        finally:
            server.kill()
        status = server.returncode if server.returncode >= 0 else 128 - server.returncode
        return status, [*answers, errors]


def compiled(folder, name, *command):
    """The program, or None if there is no such compiler."""
    target = os.path.join(folder, name)
    if not shutil.which(command[0]):
        return None
    subprocess.run([*command, "-o", target] if "{}" not in command else
                   [target if word == "{}" else word for word in command],
                   check=True, stdout=subprocess.DEVNULL, cwd=folder)
    return target


def c_file_of_30000_lines(path):
    with open(path, "w", encoding="ascii") as file:
        for n in range(3000):
            file.write(f"""\
struct s{n} {{ int a[{n % 13 + 1}]; double d; struct s{n} *next; }};
int f{n}(struct s{n} *p, unsigned x) {{
  int sum = {n};
  for (unsigned i = 0; i < x % {n % 17 + 2}; ++i)
    sum += p->a[i % {n % 13 + 1}] * (int)(i ^ x);
  if (sum & {1 << n % 9}) p->d += sum;
  while (p && p->next != p) {{ sum ^= (int)p->d; p = p->next; }}
  switch (sum & 7) {{ case 1: return {n}; case 2: return -sum; case 5: sum *= 3; }}
  return sum;
}}
""")


def redis(folder):
    port = servers.free_port()

    def client(*words):
        done = subprocess.run(["redis-cli", "-p", str(port), *words], capture_output=True,
                              timeout=LONGEST, check=False)
        return done.stdout + done.stderr

    def ask():
        load = ["redis-benchmark", "-p", str(port), "-q", "--csv", "-n", "4000", "-c", "20", "-t",
                "set,get,incr,lpush,lrange_100,zadd,mset"]
        done = subprocess.run(load, capture_output=True, timeout=LONGEST, check=False)
        script = "local s=0 for i=1,50000 do s=s+i%7 end redis.call('set','s',s) return s"
        return [str(done.returncode).encode(), without_numbers(done.stdout), done.stderr,
                client("get", "counter:__rand_int__"), client("llen", "mylist"),
                client("eval", script, "0"), client("zcard", "myzset"), client("get", "s")]

    return Server(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir",
                   folder, "--appendonly", "no"], port, ask,
                  lambda server: client("shutdown", "nosave"))


def nginx(folder, master):
    port = servers.free_port()
    root = os.path.join(folder, "nginx-" + master)
    os.makedirs(os.path.join(root, "www"))
    os.chmod(folder, 0o755)
    with open(os.path.join(root, "www", "page"), "w", encoding="ascii") as page:
        page.write("".join(f"{n * n} " for n in range(3000)))
    config = os.path.join(root, "nginx.conf")
    with open(config, "w", encoding="ascii") as file:
        file.write(NGINX.format(master=master, folder=root, port=port))

    def ask():
        url = f"http://127.0.0.1:{port}/page"
        load = subprocess.run(["wrk", "-t1", "-c16", "-d1s", url], capture_output=True,
                              timeout=LONGEST, check=False)
        complaints = [line for line in load.stdout.splitlines()
                      if b"Non-2xx" in line or b"Socket errors" in line]
        with urllib.request.urlopen(url, timeout=30) as answer:
            page = answer.read()
        zipped = urllib.request.Request(url, headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(zipped, timeout=30) as answer:
            return [str(load.returncode).encode(), *complaints, page, answer.read()]

    def farewell(server):
        with open(os.path.join(root, "nginx.pid"), encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGQUIT)

    return Server(["nginx", "-c", config], port, ask, farewell)


def programs(folder):
    """By name, a function that prepares the program; None if it is not installed."""

    def path(name):
        return os.path.join(folder, name)

    def source(name):
        return os.path.join(HERE, "programs", name)

    with open(path("text"), "w", encoding="ascii") as text:
        for number in range(300_000):
            text.write(f"{number * number % 9973} ")
    for name, contents in (("node.js", NODE), ("c30000.c", None)):
        if contents:
            with open(path(name), "w", encoding="ascii") as file:
                file.write(contents)
        else:
            c_file_of_30000_lines(path(name))

    def if_there(*command, **more):
        found = shutil.which(command[0])
        return lambda: Command(found, *command[1:], **more) if found else None

    def build(name, *command):
        def prepare():
            target = compiled(folder, name, *command)
            return Command(target) if target else None
        return prepare

    def python_tests(name):
        return if_there("/usr/bin/python3", "-m", "test", name, normalise=without_times)

    cc1 = sorted(glob.glob("/usr/lib/gcc/x86_64-linux-gnu/*/cc1"))
    table = {
        "bzip2": if_there("bzip2", "-c", path("text")),
        "gzip": if_there("gzip", "-9", "-n", "-c", path("text")),
        "xz": if_there("xz", "-T2", "-2", "-c", path("text")),
        "zstd": if_there("zstd", "-q", "-12", "-T2", "-c", path("text")),
        "lua5.4": if_there("lua5.4", "-e", LUA),
        "perl": if_there("perl", "-e", PERL),
        "sqlite3": if_there("sqlite3", ":memory:", SQL),
        "openssl dgst": if_there("openssl", "dgst", "-sha3-512", path("text")),
        "openssl speed": if_there("openssl", "speed", "-seconds", "1", "-bytes", "4096", "-evp",
                                  "aes-256-gcm", normalise=without_numbers),
        "openssl speed rsa": if_there("openssl", "speed", "-seconds", "1", "rsa1024",
                                      normalise=without_numbers),
        "nodejs": if_there("node", path("node.js")),
        "cc1": if_there(cc1[-1] if cc1 else "cc1", "-quiet", "-O0", path("c30000.c"), "-o", "-"),
        "redis-server": lambda: redis(folder) if shutil.which("redis-server") else None,
        "nginx": lambda: nginx(folder, "off") if shutil.which("nginx") else None,
        "nginx master": lambda: nginx(folder, "on") if shutil.which("nginx") else None,
        "go": build("go-work", "go", "build", "-o", "{}", source("work.go")),
        "rust": build("rust-work", "rustc", "-O", source("work.rs")),
        "static musl": build("musl-work", "musl-gcc", "-static", "-O2", source("static_libc.c")),
        "exceptions": build("throwing", "g++", "-O2", source("throwing.cpp")),
        "signals": build("hostile", "gcc", "-O1", "-pthread",
                         os.path.join(HERE, "../../tests/programs/full_hostile.c")),
    }
    for name in ("math", "threading", "signal", "generators", "exceptions"):
        table["python test_" + name] = python_tests("test_" + name)
    return table


def difference(native, seen):
    if native[0] != seen[0]:
        return f"status {seen[0]} instead of {native[0]}: {seen[1][-1][-300:]!r}"
    for expected, got in zip(native[1], seen[1]):
        if expected == got:
            continue
        old, new = expected.splitlines(), got.splitlines()
        for a, b in zip(old + [b""] * len(new), new + [b""] * len(old)):
            if a != b:
                return f"{b[:150]!r} instead of {a[:150]!r}"
    return "another number of outputs" if len(native[1]) != len(seen[1]) else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--mode", default="full")
    parser.add_argument("--options", default="", help="further options of run")
    parser.add_argument("--list", action="store_true", help="only names the programs")
    parser.add_argument("programs", nargs="*")
    options = parser.parse_args()
    shadowprof = os.path.abspath(os.path.join(options.build, "shadowprof"))
    rows, failed = [], False
    with tempfile.TemporaryDirectory(prefix="bench-full-") as folder:
        profile = os.path.join(folder, "profile.json")
        table = programs(folder)
        if options.list:
            print("\n".join(table))
            return 0
        for name in options.programs or table:
            program = table[name]()
            if not program:
                rows.append(f"{name:22} not installed")
                continue
            began = time.monotonic()
            native = program.run([])
            seconds = time.monotonic() - began
            complaints, warnings, times, ended = [], set(), [], Counter()
            for number in range(options.rounds):
                profiles = "all" if number % 2 else "path,edge"
                command = [shadowprof, "run", "-q", "-m", options.mode, "-p", profiles, "-o", profile,
                           *options.options.split(), "--"]
                began = time.monotonic()
                try:
                    wrong = difference(native, program.run(command))
                    with open(profile, encoding="utf-8") as file:
                        document = json.load(file)
                    os.unlink(profile)
                    ended.update(document["coverage"]["ended"])
                    warnings.update(document["run"].get("warnings", []))
                    wrong = wrong or document["run"].get("interrupted")
                    if options.mode == "full":
                        wrong = wrong or "; ".join(document["run"].get("warnings", []))
                except (subprocess.TimeoutExpired, OSError) as error:
                    wrong = str(error)[-200:]
                times.append(time.monotonic() - began)
                if wrong:
                    complaints.append(wrong)
                    print(f"{name}, round {number + 1} ({profiles}): {wrong}", flush=True)
            good = options.rounds - len(complaints)
            failed = failed or bool(complaints)
            begun = len(rows)
            rows.append(f"{name:22} {good:3} of {options.rounds} the same; native {seconds:6.2f} s,"
                        f" {options.mode} {sum(times) / len(times) if times else 0:6.2f} s")
            if options.mode != "full":
                reasons = ", ".join(f"{reason} {n}" for reason, n in ended.most_common(8))
                rows[-1] += f"; {sum(ended.values())} samples: {reasons}"
                rows += [f"{'':22} {warning}" for warning in sorted(warnings)]
            print("\n".join(rows[begun:]), flush=True)
    print("\n" + "\n".join(rows))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
