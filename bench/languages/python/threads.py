"""Two threads that take turns."""

import threading

from truth import Truth, until_end


def one():
    s = 0
    for i in range(3000):
        s += i
    return s


def two():
    return [str(i) for i in range(1500)]


def three():
    d = {}
    for i in range(1500):
        d[i] = i
    return d


def run(truth, parts):
    for _ in until_end():
        for part in parts:
            truth.call(part)


truths = [Truth(), Truth()]
threads = [
    threading.Thread(target=run, args=(truth, parts))
    for truth, parts in zip(truths, [(one, two), (three, one, one)])
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
truths[0].add(truths[1])
truths[0].write()
