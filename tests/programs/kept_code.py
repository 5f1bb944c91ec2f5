"""What was learned of code is kept from one run to the next, and only there where it is safe."""

import gzip
import os
import re
import shutil
import stat

from vocabulary import SHADOWPROF, check, check_equal, profiled, read_profile, run, scratch

TEXT = b" ".join(b"%d" % (number * number % 9973) for number in range(20_000))
PROGRAM = ["gzip", "-n", "-c", "text"]


def run_once(*options, cache="cache"):
    """The edges of a run, and how often the program waited for code."""
    outcome = profiled(PROGRAM, "-m", "full", "-p", "edge", "-v", *options,
                       env={"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": os.path.abspath(cache)})
    # What is learned makes a difference only where no translations are kept (kept_translations.py).
    for name in os.listdir(f"{cache}/shadowprof") if os.path.isdir(f"{cache}/shadowprof") else ():
        if name.startswith("units-"):
            os.unlink(f"{cache}/shadowprof/{name}")
    check_equal("its output", (outcome.status, gzip.decompress(outcome.stdout)), (0, TEXT))
    profile = read_profile()
    misses = re.search(rb"waited (\d+) times for code", outcome.stderr)
    return (profile["locations"], profile["edges"]), int(misses.group(1)) if misses else 0


def is_cold(misses):
    """Not exactly the same: the environment differs."""
    return abs(misses - cold) < cold / 20


def kept():
    return {name: open(os.path.join("cache/shadowprof", name), "rb").read()
            for name in os.listdir("cache/shadowprof")}


def doctor(cache="cache"):
    said = run([SHADOWPROF, "doctor"], env={**os.environ, "XDG_CACHE_HOME": os.path.abspath(cache)}).stdout.decode()
    return next(line for line in said.splitlines() if line.startswith("kept files"))


with scratch():
    with open("text", "wb") as text:
        text.write(TEXT)
    edges, cold = run_once("--no-cache")
    check(not os.path.exists("cache"), "--no-cache has kept something")
    check("0 files" in doctor(), doctor())
    same, misses = run_once()
    check(same == edges and is_cold(misses), f"it waited {misses} times, and {cold} times before")
    for name in kept():
        mode = os.lstat(os.path.join("cache/shadowprof", name)).st_mode
        check(stat.S_ISREG(mode) and mode & 0o777 == 0o600, f"{name} has mode {mode:o}")
    check_equal("the folder's mode", os.lstat("cache/shadowprof").st_mode & 0o777, 0o700)
    check(len(kept()) >= 3, f"only {set(kept())} are kept")
    same, warm = run_once()
    check(same == edges, "the edges differ")
    check(3 * warm < cold, f"it waited {warm} times, and {cold} times before")
    line = doctor()
    check("fine" in line and f"{len(kept())} files" in line and "rm -r" in line, line)

    before = kept()
    unused = {name: os.stat(f"cache/shadowprof/{name}").st_atime_ns for name in before}
    check(is_cold(run_once("--no-cache")[1]), "--no-cache has used what is kept")
    check_equal("what is kept", kept(), before)
    check_equal("what was read", {n: os.stat(f"cache/shadowprof/{n}").st_atime_ns for n in before}, unused)

    # Whatever is in the files, the run is right and tidies up.
    def damaged(change):
        for name, contents in before.items():
            with open(f"cache/shadowprof/{name}", "wb") as file:
                file.write(change(contents))
        same, misses = run_once()
        check(same == edges, "the edges differ")
        check(is_cold(misses), f"it waited {misses} times, and {cold} times without a file")
        check(all(contents.startswith((b"shadowprof-code 1\n", b"\x7fELF")) for contents in kept().values()), "damage stays")

    damaged(lambda contents: b"")
    damaged(lambda contents: contents[:-20])
    damaged(lambda contents: contents.replace(b"code 1", b"code 9"))
    damaged(lambda contents: contents[:60] + bytes([contents[60] ^ 1]) + contents[61:])
    damaged(lambda contents: contents + bytes(3 << 20))

    # What others can write, or lead elsewhere, is left alone.
    def left_alone():
        there = kept()
        check(is_cold(run_once()[1]), "what another could have written was used")
        check_equal("what is kept", kept(), there)

    os.chmod("cache/shadowprof", 0o777)
    left_alone()
    check("limited" in doctor(), doctor())
    os.chmod("cache/shadowprof", 0o700)
    for name in before:
        os.chmod(f"cache/shadowprof/{name}", 0o666)
    left_alone()
    os.mkdir("elsewhere")
    for name, contents in before.items():
        os.rename(f"cache/shadowprof/{name}", f"elsewhere/{name}")
        os.chmod(f"elsewhere/{name}", 0o600)
        os.symlink(os.path.abspath(f"elsewhere/{name}"), f"cache/shadowprof/{name}")
    left_alone()
    shutil.rmtree("cache/shadowprof")
    os.symlink(os.path.abspath("elsewhere"), "cache/shadowprof")
    left_alone()
    check("limited" in doctor(), doctor())
    os.unlink("cache/shadowprof")
    if os.geteuid() == 0:
        os.mkdir("cache/shadowprof")
        os.chown("cache/shadowprof", 65534, 65534)
        left_alone()
        check("limited" in doctor(), doctor())
        os.rmdir("cache/shadowprof")
    with open("no_folder", "w", encoding="ascii"):
        pass
    check(is_cold(run_once(cache="no_folder")[1]), "a file is no folder")
    check("limited" in doctor("no_folder"), doctor("no_folder"))

    # The oldest go when there is more than 512 MB.
    os.makedirs("cache/shadowprof", mode=0o700)
    for number in range(80):
        with open(f"cache/shadowprof/code-{number:02}", "wb") as file:
            file.truncate(8 << 20)
        os.utime(f"cache/shadowprof/code-{number:02}", (1000 + number, 1000))
    run_once()
    check(sum(map(len, kept().values())) <= 512 << 20, "more is kept than should be")
    check("code-00" not in kept() and "code-79" in kept(), "not the oldest went")
