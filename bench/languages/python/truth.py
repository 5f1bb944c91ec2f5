"""What each part of a program took, measured where functions of milliseconds are called."""

import json
import sys
import time


class Truth:
    def __init__(self):
        self.spent = {}

    def call(self, part):
        before = time.thread_time()
        part()
        self.spent[part.__name__] = self.spent.get(part.__name__, 0.0) + time.thread_time() - before

    def add(self, other):
        for name, seconds in other.spent.items():
            self.spent[name] = self.spent.get(name, 0.0) + seconds

    def write(self):
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            json.dump(self.spent, file)


def until_end():
    """Yields for as many seconds as the command line says."""
    end = time.time() + float(sys.argv[2])
    while time.time() < end:
        yield


def repeat(*parts):
    truth = Truth()
    for _ in until_end():
        for part in parts:
            truth.call(part)
    return truth
