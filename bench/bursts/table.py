#!/usr/bin/env python3
"""table.py WANTED PROGRAM.ROUND.json...: how the bursts of each program ended.

Exits with 1 if a burst ended for a reason that a healthy program gives no cause for, and with 3,
printing nothing, if there are fewer bursts than wanted."""
import collections
import json
import os
import sys

HEALTHY = ('sample size', 'system call', 'exit')


def is_healthy(reason):
    return any(reason == h or reason.startswith(h + ' ') for h in HEALTHY)


def main():
    wanted = int(sys.argv[1])
    programs = collections.defaultdict(collections.Counter)
    instructions = collections.Counter()
    for path in sys.argv[2:]:
        program = os.path.basename(path).rsplit('.', 2)[0]
        with open(path) as file:
            coverage = json.load(file)['coverage']
        programs[program].update(coverage['ended'])
        instructions[program] += coverage['instructions']
    total = sum(sum(ended.values()) for ended in programs.values())
    if total < wanted:
        return 3
    print(f'{"program":<18}{"bursts":>8}{"instructions":>15}  ended')
    for program, ended in programs.items():
        reasons = ', '.join(f'{count} {reason}' for reason, count in ended.most_common())
        print(f'{program:<18}{sum(ended.values()):>8}{instructions[program]:>15}  {reasons}')
    bad = {r: n for ended in programs.values() for r, n in ended.items() if not is_healthy(r)}
    print(f'{total} bursts, {sum(bad.values())} ended for a reason of ours')
    return 1 if bad else 0


sys.exit(main())
