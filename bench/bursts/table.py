#!/usr/bin/env python3
"""table.py WANTED PROGRAM.ROUND.json...: how the bursts of each program ended.

Exits with 1 if a burst ended for a reason that a healthy program gives no cause for, and with 3,
printing nothing, if there are fewer bursts than wanted.

A burst holds one thread. The others go on, and do not see the locks that it takes in its private
view: rarely one frees or changes, in the middle of the burst, what the held thread is about to use.
In programs of several threads a fault is therefore no defect; it is counted apart."""
import collections
import json
import os
import sys

HEALTHY = ('sample size', 'system call', 'exit')
FAULTS = ('memory fault', 'no decodable instruction', 'general protection fault')
OF_SEVERAL_THREADS = ('nodejs', 'redis-server')


def is_healthy(reason):
    return any(reason == h or reason.startswith(h + ' ') for h in HEALTHY)


def is_race(program, reason):
    return program in OF_SEVERAL_THREADS and reason in FAULTS


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
    ours = races = 0
    for program, ended in programs.items():
        for reason, count in ended.items():
            if is_race(program, reason):
                races += count
            elif not is_healthy(reason):
                ours += count
    print(f'{total} bursts, {ours} ended for a reason of ours, {races} by what other threads did')
    return 1 if ours else 0


sys.exit(main())
