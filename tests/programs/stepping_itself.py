"""A program that sets the trap flag, by popf and by what a handler leaves in its frame, gets as many traps as
natively, in every mode."""

import os
import sys

from vocabulary import same_as_native, scratch

STEPPING_ITSELF = os.path.abspath(sys.argv[1])
ROUNDS = int(os.environ.get("ROUNDS", "1"))

with scratch():
    for _ in range(ROUNDS):
        for mode in ("auto", "instant", "full", "shadow", "burst", "step"):
            rounds = "100" if mode in ("auto", "instant") else "20"
            profile = same_as_native([STEPPING_ITSELF, rounds], "--mode", mode, "--overhead", "60%")
            print(f"{mode}: {profile['coverage']}", flush=True)
