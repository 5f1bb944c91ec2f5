"""The manual page has the options of every command, and no others. The commands' options come from the completion
of fish, which is written from the same declarations as --help.

    man_page.py SHADOWPROF MAN_PAGE"""

import re
import subprocess
import sys
from collections import defaultdict

SHADOWPROF, MAN_PAGE = sys.argv[1:]
OPTION = re.compile(r"complete -c shadowprof -n (\S+|'[^']*')((?: -[ls] \S+)+)")


def options_of_commands():
    script = subprocess.run([SHADOWPROF, "--completion", "fish"], capture_output=True, text=True, check=True).stdout
    options = defaultdict(set)
    for line in script.splitlines():
        match = OPTION.match(line)
        if match:
            condition = match[1].strip("'").split()  # a function and, for those of a command, its name
            command = condition[1] if len(condition) > 1 else ""
            names = re.findall(r" -([ls]) (\S+)", match[2])
            options[command] |= {"--" + name if kind == "l" else "-" + name for kind, name in names} - {"-h", "--help"}
    return options


def options_of_page():
    """By section: the commands that it is about, in its title, and the options that its list has."""
    sections = {}
    with open(MAN_PAGE, encoding="utf-8") as file:
        for line in file:
            title = re.match(r"\.Sh OPTIONS OF (.*)", line)
            if line.startswith(".Sh"):
                commands = tuple(title[1].lower().split(" and ")) if title else ()
            elif line.startswith(".It Fl") and commands:
                # .It Fl o , -output Ar file: a dash is Fl's own.
                words = re.split(r" (?:Ar|Cm|Oo|Op)\b", line.removeprefix(".It Fl "))[0]
                sections.setdefault(commands, set()).update("-" + word for word in words.split() if word != ",")
    return sections


def main():
    options = options_of_commands()
    mistakes = []
    described = set()
    for commands, listed in options_of_page().items():
        declared = set().union(*(options[command] for command in commands))
        described |= set(commands)
        mistakes += [f"{' and '.join(commands)}: {name} is not in the manual page" for name in sorted(declared - listed)]
        mistakes += [f"{' and '.join(commands)}: there is no {name}" for name in sorted(listed - declared)]
    mistakes += [
        f"{command}: its options are not in the manual page"
        for command, names in options.items()
        if names and command and command not in described
    ]
    print(*mistakes, sep="\n")
    sys.exit(1 if mistakes else 0)


if __name__ == "__main__":
    main()
