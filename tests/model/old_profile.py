"""Profiles that an earlier release wrote (data/first.json and second.json, of two runs of a fixture;
merged.json is what that release's merge made of them, without a section that there is no more) are read and merged
as that release did.

old_profile.py SHADOWPROF DATA
"""
import pathlib
import subprocess
import sys
import tempfile

shadowprof, data = sys.argv[1], pathlib.Path(sys.argv[2])
first, second, merged = (data / f"{name}.json" for name in ("first", "second", "merged"))


def run(*arguments):
    result = subprocess.run([shadowprof, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"FAILED: {arguments} ended with {result.returncode}: {result.stderr}")
    return result.stdout


report = run("report", first)
for chapter in ("Hot functions", "Hot paths", "Hot edges", "Hot calls", "Predictable values"):
    if chapter not in report:
        sys.exit(f"FAILED: the report has no chapter {chapter}")
run("diff", first, second)
with tempfile.NamedTemporaryFile(suffix=".json") as file:
    run("merge", "-o", file.name, first, second)
    if pathlib.Path(file.name).read_bytes() != merged.read_bytes():
        sys.exit("FAILED: merge makes another profile of them")
