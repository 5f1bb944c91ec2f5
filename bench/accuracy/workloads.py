"""The programs that accuracy is measured on: programs of Debian, and small ones of our own for extremes."""

import importlib.util
import os
import random
import signal
import subprocess
import sys

from common import HERE, build

sys.path.insert(0, os.path.dirname(HERE))
import servers  # noqa: E402


RUBY = """
words = Hash.new(0); list = []
(1..%d).each { |i| words["k#{i * 7919 %% 1009}"] += i; list << (i * i) %% 9973 if i %% 8 == 0 }
puts words.size, list.sort.first(5).sum
"""
# Code that is compiled as the program runs lies elsewhere in each run, so no two runs could be compared by
# address: node and java interpret here.
NODE = """
let s = 0;
for (let k = 0; k < %d; ++k) {
  const a = Array.from({length: 20000}, (_, i) => ({id: (i * 7919 + k) %% 20011, name: "n" + i %% 97}));
  a.sort((x, y) => x.id - y.id);
  s += JSON.parse(JSON.stringify(a))[k].id;
}
console.log(s);
"""
JAVA = """
import java.util.*;
public class Work {
  public static void main(String[] args) {
    long s = 0;
    for (int k = 0; k < Integer.parseInt(args[0]); ++k) {
      Map<Integer, String> map = new HashMap<>();
      int[] list = new int[40000];
      for (int i = 0; i < list.length; ++i) {
        list[i] = (i * 7919 + k) % 40009;
        map.put(list[i] % 997, "v" + i % 89);
      }
      Arrays.sort(list);
      StringBuilder text = new StringBuilder();
      for (String value : map.values()) text.append(value);
      s += text.toString().hashCode() + list[k];
    }
    System.out.println(s);
  }
}
"""
SCENE = """
#version 3.7;
global_settings { assumed_gamma 1 }
camera { location <0, 3, -9> look_at 0 }
light_source { <8, 12, -8> rgb 1 }
plane { y, -1 pigment { checker rgb 1 rgb 0.3 } finish { reflection 0.2 } }
#for (I, 0, 24)
  sphere { <mod(I, 5) * 1.6 - 3.2, div(I, 5) * 0.9 - 0.5, div(I, 5)>, 0.7
    pigment { granite scale 0.4 } finish { reflection 0.35 phong 0.6 } normal { bumps 0.3 scale 0.1 } }
#end
"""


def _scene(folder):
    path = os.path.join(folder, "scene.pov")
    with open(path, "w", encoding="ascii") as file:
        file.write(SCENE)
    return path


def _programs_of_full():
    spec = importlib.util.spec_from_file_location(
        "workloads_of_full", os.path.join(HERE, "..", "full", "workloads.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.programs


def _many_functions(folder, scale):
    """A source file for compilers."""
    path = os.path.join(folder, "many.c")
    chance = random.Random(2)
    with open(path, "w", encoding="ascii") as file:
        file.write("typedef unsigned long uint64_t;\n")
        for i in range(max(1, int(4000 * scale))):
            a, b, c = (chance.randrange(1, 1000) for _ in range(3))
            file.write(
                f"uint64_t f{i}(const uint64_t* x, uint64_t n) {{\n"
                f"  uint64_t s = {a};\n"
                f"  for (uint64_t k = 0; k < n; ++k) {{\n"
                f"    if (x[k] % {b} == {c} % {b}) s += x[k] * {c}; else s ^= x[k] >> {a % 60};\n"
                f"    switch (x[k] & 3) {{ case 0: s *= {b}; break; case 1: s -= {c}; break;"
                f" case 2: s |= {a}; break; default: s += k; }}\n"
                f"  }}\n  return s;\n}}\n")
    return path


def _large_code(folder):
    """A program of two thousand functions, called in a random order: much more code than caches hold."""
    source, program = os.path.join(folder, "large.c"), os.path.join(folder, "large")
    chance = random.Random(3)
    count = 2000
    with open(source, "w", encoding="ascii") as file:
        file.write("#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n")
        for i in range(count):
            lines = "".join(
                f"  if (x & {1 << chance.randrange(16)}) x = x * {chance.randrange(3, 999, 2)} + {k};"
                f" else x ^= x >> {chance.randrange(1, 30)};\n" for k in range(chance.randrange(4, 30)))
            file.write(f"__attribute__((noinline)) static uint32_t f{i}(uint32_t x) {{\n{lines}  return x;\n}}\n")
        table = ",".join(f"f{i}" for i in range(count))
        file.write(f"static uint32_t (*const all[])(uint32_t) = {{{table}}};\n"
                   "int main(int argc, char** argv) {\n"
                   "  (void)argc;\n  uint32_t x = 1, s = 1;\n"
                   "  for (uint64_t i = strtoull(argv[1], 0, 10); i > 0; --i) {\n"
                   "    s = s * 1664525 + 1013904223;\n"
                   f"    x = all[(uint64_t)s * {count} >> 32](x + s);\n  }}\n"
                   '  printf("%u\\n", x);\n}\n')
    subprocess.run(["gcc", "-O2", "-o", program, source], check=True)
    return program


def workloads(folder, scale):
    """name -> how to make its command; at scale 1 it runs for some ten seconds."""
    of_full = _programs_of_full()(folder, scale)

    def n(count):
        return str(max(1, int(count * scale)))

    def zstd():
        return ["zstd", "-q", "-12", "-T1", "-c", _programs_of_full()(folder, scale * 0.7)["gzip"]()[-1]]

    def openssl():
        path = os.path.join(folder, "zeros")
        with open(path, "wb") as file:
            file.truncate(int(3.5e9 * scale))
        return ["openssl", "dgst", "-sha3-256", path]

    def cc1():
        return ["/usr/lib/gcc/x86_64-linux-gnu/12/cc1", "-quiet", "-O2", _many_functions(folder, scale),
                "-o", "/dev/null"]

    def java():
        source = os.path.join(folder, "Work.java")
        with open(source, "w", encoding="ascii") as file:
            file.write(JAVA)
        subprocess.run(["javac", "-d", folder, source], check=True)
        return ["java", "-Xint", "-XX:+UseSerialGC", "-cp", folder, "Work", n(55)]

    # The three that take most of the time come first.
    return {
        **{name: of_full[name] for name in ("gzip", "sqlite3", "python3", "bzip2", "xz", "lua5.4", "perl")},
        "zstd": zstd,
        "openssl": openssl,
        "cc1": cc1,
        "ruby": lambda: ["ruby", "-e", RUBY % int(21e6 * scale)],
        "node": lambda: ["node", "--jitless", "-e", NODE % int(350 * scale + 1)],
        "java": java,
        "ffmpeg": lambda: ["ffmpeg", "-v", "error", "-filter_threads", "1", "-f", "lavfi", "-i",
                           f"testsrc2=duration={350 * scale}:size=640x360:rate=25", "-c:v", "mpeg4", "-threads", "2",
                           "-f", "null", "-"],
        "povray": lambda: ["povray", "+I" + _scene(folder), "-D", "-O/dev/null", "+FP", f"+W{n(3600)}", "+H1600", "+WT2"],
        **{name: lambda server=server: server(folder, scale).command() for name, server in SERVERS.items()},
        "phases": lambda: [build(folder, "phases.c"), n(40e9), "100M"],
        "requests": lambda: [build(folder, "requests.c"), n(40000), "1M", "30"],
        "branches": lambda: [build(folder, "branches.c"), n(50e9)],
        "paths": lambda: [build(folder, "paths.c"), n(12e9)],
        "large code": lambda: [_large_code(folder), n(160e6)],
    }


class Redis:
    """Sends requests to a server, and then ends it."""

    port = 36379

    def __init__(self, _, scale):
        self.requests = int(400_000 * scale)

    def command(self):
        return ["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no"]

    def drive(self):
        servers.await_answer(self.port)
        _quiet(["redis-benchmark", "-p", str(self.port), "-q", "-r", "10000", "-c", "4", "-n", str(self.requests), "-t",
                "set,get,lpush,sadd,zadd,lrange_100"])
        _quiet(["redis-cli", "-p", str(self.port), "shutdown", "nosave"])


class Nginx:
    """A page of 64 KB, and one of a few words."""

    port = 36380

    def __init__(self, folder, scale):
        self.folder, self.seconds = folder, max(1, round(5 * scale))

    def command(self):
        with open(os.path.join(self.folder, "large"), "w", encoding="ascii") as file:
            file.write("nginx " * 11000)
        return servers.nginx(self.folder, self.port, http="gzip on; gzip_types *;",
                             server=f'location /large {{ root {self.folder}; }} location / {{ return 200 "hello"; }}')

    def drive(self):
        servers.await_answer(self.port)
        for page in ("", "large"):
            _quiet(["wrk", "-t", "1", "-c", "4", "-d", str(self.seconds), "-H", "Accept-Encoding: gzip",
                    f"http://127.0.0.1:{self.port}/{page}"])
        with open(os.path.join(self.folder, "nginx.pid"), encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGQUIT)


class Postgres:
    """The transactions of pgbench."""

    port = 36381

    def __init__(self, folder, scale):
        self.server, self.seconds = servers.Postgres(folder, self.port), max(1, round(10 * scale))

    def command(self):
        return self.server.command()

    def drive(self):
        self.server.await_ready()
        self.server.pgbench("-i", "-s", "3")
        self.server.pgbench("-n", "-c", "2", "-T", str(self.seconds))
        self.server.stop()


SERVERS = {"redis": Redis, "nginx": Nginx, "postgres": Postgres}


def drive(program, folder, scale):
    """What else has to be done while the program runs: nothing, or to send requests to it and then to end it."""
    return SERVERS[program](folder, scale).drive if program in SERVERS else None


def _quiet(command):
    subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
