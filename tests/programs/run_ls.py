"""ls -lR on a tree that never changes, and cat, from the first instruction to the last."""

import os

from vocabulary import check, check_saw_code_of, same_as_native, scratch

with scratch():
    for folder in ("tree/a/b", "tree/c"):
        os.makedirs(folder)
        for size in range(3):
            path = f"{folder}/{size}"
            with open(path, "w", encoding="ascii") as file:
                file.write("x" * size)
            os.utime(path, (10**9, 10**9))
    for folder, _, _ in os.walk("tree", topdown=False):
        os.utime(folder, (10**9, 10**9))
    profile = same_as_native(["ls", "-lR", "tree"], "--mode", "full")
    check_saw_code_of(profile, "ls")
    check(profile["edges"]["exhaustive"], "the whole program was followed and yet not all was seen")

    # A third of the instructions: a step takes a tenth of a millisecond where entering the kernel is expensive.
    profile = same_as_native(["cat", "tree/a/b/2"], "--sample-size", "0", "--mode", "step")
    check_saw_code_of(profile, "cat")
    check(profile["edges"]["exhaustive"], "the whole program was stepped and yet not all was seen")
