#!/usr/bin/env python3
"""Checks the rules of src/ that no compiler checks:

  - no file has more than 700 lines,
  - no folder has more than thirty pairs of header and source directly inside,
  - no header serves a single source file: its text belongs into that file,
  - a room includes only its own headers and those of rooms below it (the order is in src/meson.build),
  - what is one room's business is not done in others (BUSINESS).

    check_house.py [--count]    one line for each breach; --count: how large each room is
"""

import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
MOST_LINES = 700
MOST_PAIRS = 30
# Headers that may have one reader: a room's tuning constants, and what is precompiled.
MAY_HAVE_ONE_READER = re.compile(r"(^|/)tuning\.h$|^pch/")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)

# What only these rooms do, and how it is known from the text.
BUSINESS = [
    ("ptrace(2)", r"::ptrace\(", {"ptrace", "machine"}),  # machine: for a child of its own
    ("perf_event_open(2)", r"\bSYS_perf_event_open\b", {"proc"}),
    ("reading another process's memory", r"\bprocess_vm_(read|write)v\(", {"proc", "emu"}),
    ("reading /proc", r'"/proc/(self/maps|%d|\{\})?["/]', {"proc", "languages", "ptrace", "inject", "emu", "sampling"}),
    ("decoding by Zydis", r"#\s*include <Zydis", {"decoder"}),
    ("unwinding by libunwind", r"#\s*include <libunwind", {"ptrace"}),
    ("reading debug information", r"#\s*include <(dwarf|elfutils/)", {"report", "cli"}),
    ("parsing options", r"#\s*include <CLI/", {"cli"}),
    ("loading modules", r"\bdlopen\(", {"addon"}),
    ("printing", r"\bstd::c(out|err)\b|\b(f?printf|puts|fmt::print)\(", {"cli"}),
    ("ending the process", r"\bstd::exit\(", {"cli"}),
]


def sources(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in (".cpp", ".h", ".c", ".S"))


def rooms():
    """The rooms by their level, ground first, as src/meson.build links them."""
    text = (SRC / "meson.build").read_text(encoding="utf-8")
    listed = re.search(r"foreach room : \[(.*?)\]", text, re.DOTALL).group(1)
    return {name: level for level, name in enumerate(re.findall(r"'(\w+)'", listed))}


def name_of(path):
    return str(path.relative_to(SRC)) if path.is_relative_to(SRC) else str(path.relative_to(ROOT))


def included_by(path):
    """The files of this repository that the file includes by itself."""
    found = []
    for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
        for base in (path.parent, SRC, ROOT / "tests"):
            candidate = (base / name).resolve()
            if candidate.is_file():
                found.append(candidate)
                break
    return found


def long_files():
    for path in SRC.rglob("*"):
        if path.suffix not in (".cpp", ".h", ".js", ".css", ".html"):
            continue
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > MOST_LINES:
            yield f"src/{name_of(path)}: {lines} lines, more than {MOST_LINES}"


def crowded_folders():
    for folder in [SRC, *(p for p in SRC.rglob("*") if p.is_dir())]:
        pairs = {p.stem for p in folder.iterdir() if p.suffix in (".cpp", ".h")}
        if len(pairs) > MOST_PAIRS:
            yield f"src/{name_of(folder)}: {len(pairs)} pairs of header and source, more than {MOST_PAIRS}"


def private_headers(includes):
    """A header that is part of a single source file, directly or by way of other headers."""
    readers = defaultdict(set)
    for source in includes:
        if source.suffix != ".cpp":
            continue
        todo, seen = [source], set()
        while todo:
            for header in includes.get(todo.pop(), []):
                if header not in seen:
                    seen.add(header)
                    readers[header].add(source)
                    todo.append(header)
    for header in sorted(p for p in includes if p.suffix == ".h" and p.is_relative_to(SRC)):
        own = header.with_suffix(".cpp")
        others = readers[header] - {own}
        enough = 1 if own in includes else 2
        if len(others) >= enough or MAY_HAVE_ONE_READER.search(name_of(header)):
            continue
        who = name_of(next(iter(readers[header]))) if readers[header] else "nothing"
        yield f"src/{name_of(header)}: only {who} includes it"


def includes_upwards(includes, levels):
    for path, headers in sorted(includes.items()):
        if not path.is_relative_to(SRC):
            continue
        room = path.relative_to(SRC).parts[0]
        for header in headers:
            other = header.relative_to(SRC).parts[0] if header.is_relative_to(SRC) else "tests"
            if room in levels and levels.get(other, -1 if other == "pch" else len(levels)) > levels[room]:
                yield f"src/{name_of(path)}: {room} is below {other}, whose {name_of(header)} it includes"


def business_of_others():
    for path in sources(SRC):
        room = path.relative_to(SRC).parts[0]
        text = path.read_text(encoding="utf-8")
        for what, pattern, rooms_that_may in BUSINESS:
            if room not in rooms_that_may and (found := re.search(pattern, text)):
                line = text.count("\n", 0, found.start()) + 1
                yield f"src/{name_of(path)}:{line}: {what} is not the business of {room}"


def count():
    lines, files = Counter(), Counter()
    for path in sources(SRC):
        room = path.relative_to(SRC).parts[0]
        lines[room] += path.read_text(encoding="utf-8").count("\n")
        files[room] += 1
    for room in rooms():
        print(f"{room:<10} {files[room]:>4} files {lines[room]:>6} lines")
    print(f"{'all':<10} {sum(files.values()):>4} files {sum(lines.values()):>6} lines")


def main():
    if sys.argv[1:] == ["--count"]:
        return count()
    if sys.argv[1:]:
        sys.exit(__doc__)
    includes = {
        path: included_by(path) for folder in ("src", "tests", "bench") for path in sources(ROOT / folder)
    }
    breaches = [
        *long_files(),
        *crowded_folders(),
        *private_headers(includes),
        *includes_upwards(includes, rooms()),
        *business_of_others(),
    ]
    for breach in breaches:
        print(breach)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
