"""Recursion, and a loop."""

from truth import repeat


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def build(depth):
    return None if depth == 0 else (build(depth - 1), depth, build(depth - 1))


def total(tree):
    if tree is None:
        return 0
    return total(tree[0]) + tree[1] + total(tree[2])


def fib_part():
    fib(20)


def tree_part():
    total(build(12))


def loop_part():
    s = 0
    for i in range(60000):
        s += i * i % 7
    return s


repeat(fib_part, tree_part, loop_part).write()
