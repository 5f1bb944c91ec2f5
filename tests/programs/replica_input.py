"""Replicas are told what their original reads from a pipe. So they come by whole requests, and nobody at the
pipe's other ends notices: each request is answered once, also
when shadowprof is killed meanwhile."""

import os
import signal
import subprocess
import sys
import time

from vocabulary import SHADOWPROF, check, check_equal, read_profile, scratch, wait_until  # isort: skip

from busy_machine import lacked_processors

FED = os.path.abspath(sys.argv[1])


def request(number):
    return bytes([number * 7 % 256]) + bytes(63)


def exchange(process, number):
    os.write(process.stdin.fileno(), request(number))
    answer = b""
    while len(answer) < 64:
        more = os.read(process.stdout.fileno(), 64 - len(answer))
        check(more, f"nothing answers request {number}")
        answer += more
    check_equal(f"the answer to request {number}", answer, request(number))


def start(*command):
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def under_shadowprof(*options):
    return start(SHADOWPROF, "run", "-m", "shadow", "--replica-input", *options, "-o", "profile.json", "--", FED)


def sum_of(requests):
    with start(FED) as native:
        for number in range(requests):
            exchange(native, number)
        native.stdin.close()
        return native.stderr.read()


def whole_requests():
    """Until replicas have passed some; on a busy machine that takes a while."""
    with under_shadowprof("--overhead", "30%", "-p", "edge") as profiled:
        requests, until = 0, time.monotonic() + 3
        while time.monotonic() < until:
            exchange(profiled, requests)
            requests += 1
        profiled.stdin.close()
        said = profiled.stderr.read()
    check_equal("the exit status", profiled.returncode, 0)
    expected = sum_of(requests)
    check(expected in said, f"{expected} is not in {said}")
    return read_profile("profile.json")


def passed_requests(profile):
    told = profile["run"].get("sampling", "").split("told ")
    return float(told[1].split()[0]) if len(told) > 1 else 0


def killed(after):
    process = under_shadowprof("--overhead", "50%")
    until, requests = time.monotonic() + after, 0
    while time.monotonic() < until:
        exchange(process, requests)
        requests += 1
    process.send_signal(signal.SIGKILL)
    process.wait()
    for _ in range(200):
        exchange(process, requests)
        requests += 1
    process.stdin.close()
    said = process.stderr.read()
    expected = sum_of(requests)
    check(expected in said, f"killed after {after} s: {expected} is not in {said}")


def has_passed_requests(profile):
    # Without a processor for them replicas are not asked for much.
    return lacked_processors(profile) or passed_requests(profile) >= 5


with scratch():
    seen = []
    wait_until(lambda: seen.append(whole_requests()) or has_passed_requests(seen[-1]), "replicas come by whole requests")
    for tenths in (3, 5, 7, 9):
        killed(tenths / 10)
