"""--mode full: code that is written while it runs is executed as it is at that moment, be it by the
instruction just before it, in all versions of the translated code."""

import os
import sys

from vocabulary import check, same_as_native, scratch

rewriting = os.path.abspath(sys.argv[1])

with scratch():
    for options in (["-p", "path,edge"], ["-p", "all"], ["-p", "all", "--exhaustive"]):
        profile = same_as_native([rewriting], "--mode", "full", *options)
        check(not profile["run"].get("warnings"), profile["run"].get("warnings"))
