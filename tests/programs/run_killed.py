"""kill -9 of shadowprof while it runs openssl or redis: the program goes on as if nothing had happened."""

import contextlib
import os
import random
import shutil
import socket
import subprocess
import time

from vocabulary import SHADOWPROF, check, check_equal, children_of, run, scratch, skip, start, stop, wait_until

MODES = ("shadow", "burst", "full")
present = [name for name in ("openssl", "redis-server") if shutil.which(name)]
if not present:
    skip("neither openssl nor redis-server is installed")


def profiler_of(command, mode, **more):
    options = ["-m", mode, "--overhead", "30%", "-q", "-o", "profile.json"]
    return start([SHADOWPROF, "run", *options, "--", *command], stderr=subprocess.DEVNULL, **more)


def programs_of(profiler, name):
    """Children that have become this program, replicas among them."""
    found = []
    for child in children_of(profiler.pid):
        with contextlib.suppress(OSError):
            if name in os.readlink(f"/proc/{child}/exe"):
                found.append(child)
    return found


def check_openssl(mode):
    command = ["openssl", "dgst", "-sha3-512", "input"]
    expected = run(command).stdout
    read_end, write_end = os.pipe()
    profiler = profiler_of(command, mode, stdout=write_end)
    os.close(write_end)
    wait_until(lambda: programs_of(profiler, "openssl"), "openssl does not start")
    time.sleep(random.uniform(0, 0.5))
    stop(profiler)
    with open(read_end, "rb") as output:
        check_equal(f"what openssl wrote in mode {mode}", output.read(), expected)


def connect(connection):
    """Redis binds its socket, which makes the file, before it listens: until then the kernel refuses."""
    with contextlib.suppress(ConnectionRefusedError, FileNotFoundError):
        connection.connect("socket")
        return True
    return False


def ask_redis(*commands):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        wait_until(lambda: connect(connection), "redis does not listen")
        with connection.makefile("rwb", buffering=0) as stream:
            answers = []
            for command in commands:
                stream.write(command + b"\r\n")
                answers.append(stream.readline())
            return answers


def check_redis(mode):
    command = ["redis-server", "--port", "0", "--unixsocket", "socket", "--save", "", "--logfile", "/dev/null"]
    profiler = profiler_of(command, mode)
    servers = []
    try:
        check_equal("the first answers", ask_redis(*[b"INCR count"] * 200)[-1], b":200\r\n")
        servers = programs_of(profiler, "redis")
        stop(profiler)
        answers = ask_redis(*[b"INCR count"] * 200, b"PING")
        check_equal(f"the answers in mode {mode}", answers[-2:], [b":400\r\n", b"+PONG\r\n"])
        ask_redis(b"SHUTDOWN NOSAVE")
        gone = lambda: not any(os.path.exists(f"/proc/{pid}/fd/0") for pid in servers)  # noqa: E731
        wait_until(gone, "redis does not end")
    finally:
        stop(profiler)
        for pid in servers:
            if os.path.exists(f"/proc/{pid}/fd/0"):
                os.kill(pid, 9)


with scratch():
    with open("input", "wb") as file:
        file.truncate(200 << 20)
    for mode in MODES:
        if "openssl" in present:
            check_openssl(mode)
        if "redis-server" in present:
            check_redis(mode)
    check(not os.path.exists("profile.json"), "a killed profiler has written a profile")
