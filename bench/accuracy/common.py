"""Shared by the benches of accuracy."""

import os
import platform
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


def machine():
    with open("/proc/cpuinfo", encoding="ascii") as file:
        model = next((line.split(":", 1)[1].strip() for line in file if "model name" in line), "?")
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release()}"


def build(folder, source, *options):
    """Compiles a program of a single source file, of this folder unless it is told where."""
    name, language = os.path.splitext(os.path.basename(source))
    program = os.path.join(folder, name)
    compiler = ["g++", "-std=c++20"] if language == ".cpp" else ["gcc"]
    if not os.path.exists(program):
        subprocess.run([*compiler, "-O2", *options, "-o", program, os.path.join(HERE, source)], check=True)
    return program


def profile(shadowprof, options, command, out, drive=None):
    """Profiles the command with fixed addresses and hash seeds, so that runs differ by sampling alone.
    Returns the processor time of it all, in seconds. `drive()`: what else has to be done meanwhile."""
    words = [shadowprof, "run", "-q", *options, "-o", out, "--", *command]
    return run(words, drive)


def run(words, drive=None):
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0"}
    process = subprocess.Popen(["setarch", "-R", *words], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        if drive:
            drive()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, words)
    return usage.ru_utime + usage.ru_stime
