"""A program that does the same in every run, if PYTHONHASHSEED is 0 and addresses are not random:
calls, a dictionary, strings, objects. One argument: how often."""

import sys


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def squared(self):
        return self.x * self.x + self.y * self.y


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def counted(n):
    counts = {}
    for i in range(n):
        key = i * 7919 % 1009
        counts[key] = counts.get(key, 0) + 1
    return sum(k * v for k, v in counts.items())


def joined(n):
    words = [f"w{i * 31 % 997}" for i in range(n)]
    return len(" ".join(sorted(words)).replace("9", "nine").split("w"))


def moved(n):
    points = [Point(i, i * i % 101) for i in range(n)]
    return sum(p.squared() for p in points if p.y > 50)


total = 0
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1):
    total += fibonacci(16) + counted(6000) + joined(3000) + moved(4000)
print(total)
