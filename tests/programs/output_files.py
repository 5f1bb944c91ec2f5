"""Where the profile goes: what cannot be written is refused before the program starts; a profile that cannot be
written after all is put elsewhere, and the exit status says that it is not where it was to be."""

import json
import os
import re

from vocabulary import SHADOWPROF, check, check_equal, check_one_line, run, scratch

NAMES = {"": 2, "/proc/x": 1, "folder/": 1, "folder": 1, "absent/p.json": 1, "absent/": 1, "file/p.json": 1}


def refused_at_once():
    for name, status in NAMES.items():
        for arguments, expected in (
            (["run", "-o", name, "--", "touch", "started"], 125),
            (["attach", "-o", name, str(os.getpid())], status),
            (["merge", "-o", name, "profile.json"], status),
            (["export", "--format", "collapsed", "-o", name, "profile.json"], status),
            (["report", "--html", name, "profile.json"], status),
        ):
            outcome = run([SHADOWPROF, *arguments])
            check_equal(f"the status of {arguments}: {outcome.stderr}", outcome.status, expected)
            check_one_line(outcome)
            check(not os.path.exists("started"), f"{arguments}: the program was started")
    check_equal("what is left", sorted(os.listdir(".")), ["file", "folder", "profile.json", "spare"])


def saved_elsewhere(command, output, program_status, status, mode):
    outcome = run([SHADOWPROF, "run", "-q", "-m", mode, "-o", output, "--", "sh", "-c", f"{command}; exit {program_status}"],
                  env=dict(os.environ, TMPDIR=os.path.abspath("spare")))
    check_equal(f"the status of a run that ends with {program_status}: {outcome.stderr}", outcome.status, status)
    check_one_line(outcome)
    said = outcome.stderr.decode()
    check(said.startswith(f"shadowprof: cannot write {output}: "), said)
    found = re.search(r"; the profile is in (\S+)\n$", said)
    check(found and os.path.dirname(found[1]) == os.path.abspath("spare"), said)
    with open(found[1], encoding="utf-8") as file:
        check_equal("the exit status in the profile", json.load(file)["targets"][0]["exit"], program_status)
    check_equal("the mode of the file", os.stat(found[1]).st_mode & 0o777, 0o600)
    check_equal("what is spared", os.listdir("spare"), [os.path.basename(found[1])])
    os.remove(found[1])


def in_place():
    outcome = run([SHADOWPROF, "run", "-q", "-m", "full", "-o", "/dev/stdout", "--", "echo", "said"])
    check_equal("the status of a run into a pipe", outcome.status, 0)
    first, _, rest = outcome.stdout.partition(b"\n")
    check_equal("what comes first", first, b"said")
    json.loads(rest)
    run(["sh", "-c", 'exec "$0" run -q -m full -o both -- echo said >both', SHADOWPROF])
    with open("both", "rb") as both:
        first, _, rest = both.read().partition(b"\n")
    check_equal("what comes first in a file", first, b"said")
    json.loads(rest)
    os.remove("both")
    check_equal("the status of merge to standard output",
                run([SHADOWPROF, "merge", "-o", "/dev/stdout", "profile.json"]).status, 0)


def a_dash_is_standard_output():
    def written(*arguments):
        outcome = run([SHADOWPROF, *arguments])
        check_equal(f"the status of {arguments}: {outcome.stderr}", outcome.status, 0)
        return outcome.stdout

    said, _, profile = written("run", "-q", "-m", "full", "-o", "-", "--", "echo", "said").partition(b"\n")
    check_equal("what comes first", said, b"said")
    check_equal("the schema", json.loads(profile)["schema"], "shadowprof-profile")
    json.loads(written("merge", "-o", "-", "profile.json"))
    json.loads(written("export", "--format", "speedscope", "-o", "-", "profile.json"))
    check(written("report", "--html", "-", "profile.json").startswith(b"<!doctype html>"), "the page is not written")
    check(not os.path.exists("-"), "there is a file -")


with scratch():
    os.mkdir("folder")
    os.mkdir("spare")
    with open("file", "w", encoding="utf-8"):
        pass
    check_equal("the status", run([SHADOWPROF, "run", "-q", "-m", "full", "-o", "profile.json", "--", "true"]).status, 0)
    refused_at_once()
    for mode in ("full", "burst"):
        for program_status, status in ((0, 125), (7, 7)):
            saved_elsewhere("true", "/dev/full", program_status, status, mode)
            os.mkdir("gone")
            saved_elsewhere("rmdir gone", "gone/profile.json", program_status, status, mode)
    in_place()
    a_dash_is_standard_output()
