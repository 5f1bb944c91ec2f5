"""--mode full: code that is written while it runs is executed as it is at that moment, be it by the
instruction just before it, in all versions of the translated code. Where that takes more than the program itself the
thread is let go of, with a line."""

import os
import sys

from vocabulary import check, check_equal, same_as_native, scratch

rewriting, patching = map(os.path.abspath, sys.argv[1:])
GIVEN_UP = "a thread runs on unprofiled: its code changes too often"


def warnings_of(command, *options):
    return same_as_native(command, "--mode", "full", *options)["run"].get("warnings", [])


with scratch():
    for options in (["-p", "path,edge"], ["-p", "all"], ["-p", "all", "--exhaustive"]):
        warnings = warnings_of([rewriting], *options)
        check(not warnings, warnings)
    check_equal("what is said of many changes", warnings_of([patching, "25000"], "-p", "path,edge"), [GIVEN_UP])
    check_equal("… with much in between", warnings_of([patching, "1100", "2000000"], "-p", "path,edge"), [])
