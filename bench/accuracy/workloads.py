"""The programs that accuracy is measured on: programs of Debian, and small ones of our own for extremes."""

import contextlib
import importlib.util
import os
import random
import socket
import subprocess
import time

from common import HERE, build


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

    # The three that take most of the time come first.
    return {
        **{name: of_full[name] for name in ("gzip", "sqlite3", "python3", "bzip2", "xz", "lua5.4", "perl")},
        "zstd": zstd,
        "openssl": openssl,
        "cc1": cc1,
        "redis": lambda: ["redis-server", "--port", str(Redis.port), "--save", "", "--appendonly", "no"],
        "phases": lambda: [build(folder, "phases.c"), n(40e9), "100M"],
        "requests": lambda: [build(folder, "requests.c"), n(40000), "1M", "30"],
        "branches": lambda: [build(folder, "branches.c"), n(50e9)],
        "paths": lambda: [build(folder, "paths.c"), n(12e9)],
        "large code": lambda: [_large_code(folder), n(160e6)],
    }


class Redis:
    """Sends requests to a server, and then ends it."""

    port = 36379

    def __init__(self, scale):
        self.requests = int(400_000 * scale)

    def drive(self):
        for _ in range(6000):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                break
            time.sleep(0.01)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(["redis-benchmark", "-p", str(self.port), "-q", "-r", "10000", "-c", "4", "-n",
                        str(self.requests), "-t", "set,get,lpush,sadd,zadd,lrange_100"], check=True, **quiet)
        subprocess.run(["redis-cli", "-p", str(self.port), "shutdown", "nosave"], check=False, **quiet)
