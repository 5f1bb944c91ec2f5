"""An interpreter with a program of its own."""

import sys

from vocabulary import check_saw_code_of, same_as_native, scratch

PROGRAM = "print(sum(i * i for i in range(8000000)))"

with scratch():
    # By default a program so short has no sample in some runs, where a fork is dear and others compute.
    profile = same_as_native([sys.executable, "-S", "-E", "-c", PROGRAM], "--overhead", "20%")
    check_saw_code_of(profile, r"python3.*", r"libpython3.*")
