"""A program that unmaps, replaces, protects, moves or gives back whatever memory it finds to be shared loses its
profile, and nothing else; in mode full with many threads in the code cache."""

import os
import sys

from vocabulary import same_as_native, scratch

TAKING_MEMORY = os.path.abspath(sys.argv[1])
ROUNDS = int(os.environ.get("ROUNDS", "1"))
WAYS = ("unmap", "replace", "protect", "move", "give-back")

with scratch():
    for _ in range(ROUNDS):
        for how in WAYS:
            for mode, threads in (("full", "0"), ("full", "3"), ("instant", "0"), ("auto", "0"), ("shadow", "0")):
                if how in ("protect", "give-back") and mode in ("auto", "shadow"):
                    continue
                profile = same_as_native([TAKING_MEMORY, how, threads], "--mode", mode, "--overhead", "60%")
                print(f"{how}, {mode}: {profile['coverage']['ended']}", flush=True)
