"""What a test may expect on a machine that has other work to do. Replicas need an idle processor; without one
shadowprof samples in mode burst and says so. Everything takes longer."""

import re
import time

# Nothing that is waited for takes this long, on the busiest machine.
PATIENCE = 60  # seconds
NO_PROCESSOR = "all processors are busy"
# Python's threads that hand the interpreter to each other are often gone when they are looked at.
NOT_ALL_READ = "the interpreter executes could be read at"


def of_busy_processors(warnings):
    """Those that say that there was no processor for replicas, for a while at least."""
    return [warning for warning in warnings if NO_PROCESSOR in warning]


def of_other_reasons(warnings):
    return [warning for warning in warnings if NO_PROCESSOR not in warning and NOT_ALL_READ not in warning]


def lacked_processors(profile):
    """Replicas were given up, for a while at least."""
    return bool(of_busy_processors(profile["run"].get("warnings", [])))


def lacked_time(profile):
    """Replicas were given up, or did not reach their length."""
    return lacked_processors(profile) or "time limit" in profile["coverage"]["ended"]


def seconds_without_processors(warnings):
    """How long there were no replicas before they came back, or None where that is not said."""
    for warning in warnings:
        match = re.search(rf"for (\d+) s \({NO_PROCESSOR}\)", warning)
        if match:
            return int(match[1])
    return None


def wait_until(condition, what, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            raise SystemExit(f"FAILED: waited {seconds} s: {what}")
        time.sleep(0.01)
