"""One instruction that fills megabytes is stopped at each byte when it is stepped: the sample ends, and the program goes on."""

import os
import sys
import time

from vocabulary import check, same_as_native, scratch

program = os.path.abspath(sys.argv[1])

with scratch():
    began = time.monotonic()
    same_as_native([program, "50", "200"], "-m", "step")
    check(time.monotonic() - began < 60, f"it took {time.monotonic() - began} s")
