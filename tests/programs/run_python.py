"""An interpreter that runs a program."""

import sys

from vocabulary import check_saw_code_of, same_as_native, scratch

PROGRAM = "print(sum(i * i for i in range(30000000)))"

with scratch():
    # By default there is no sample in some runs, where a fork is dear; and where others compute, the
    # first replica, of when python was loaded, may have no processor for a second.
    profile = same_as_native([sys.executable, "-S", "-E", "-c", PROGRAM], "--overhead", "20%")
    check_saw_code_of(profile, r"python3.*", r"libpython3.*")
