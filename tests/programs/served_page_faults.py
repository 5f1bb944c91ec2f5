"""A program that serves its page faults itself (userfaultfd): nobody waits for a page that only a stopped thread could
bring, and it is told of no fork that it did not make."""

import os
import sys

from vocabulary import run, same_as_native, scratch, skip

program = os.path.abspath(sys.argv[1])

with scratch():
    if run([program, "1"]).status == 77:
        skip("there is no userfaultfd(2)")
    # A hang is what this is about: the time limit is generous, but finite.
    for mode in "burst", "shadow", "instant", "full":
        same_as_native([program, "4"], "-m", mode, "--overhead", "20%", timeout=120)
