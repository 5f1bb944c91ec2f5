"""A replica has no effect outside itself.

    isolation.py NATIVE-REPLICAS WORLD docs/system-calls.md

The program "world" shares everything with everybody and checks what it gets; it must end with the
same files, bytes and exit status under a thousand replicas as without any. Who reads its output must
see the end as soon as it closes it. And where tracefs can be used, the kernel's own record of the
system calls that replicas execute must show only what the table allows.
"""
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

native_replicas, world, table = sys.argv[1:4]
TRACEFS = pathlib.Path('/sys/kernel/tracing')


def tree(directory):
    """Names, modes and bytes; not the program, whose bytes need no comparing twice."""
    found = {}
    for path in sorted(pathlib.Path(directory).rglob('*')):
        contents = path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(directory))] = (path.stat().st_mode, contents)
    return found


def read_report(path):
    report = {'end': {}}
    for line in open(path):
        words = line.split(maxsplit=2)
        if words[0] == 'end':
            report['end'][words[2].strip()] = int(words[1])
        else:
            report[words[0]] = words[1:]
    return report


def run_world(rounds, options=None):
    with tempfile.TemporaryDirectory() as directory, tempfile.NamedTemporaryFile() as report:
        command = [world, directory, str(rounds)]
        if options is not None:
            command = [native_replicas, '--report', report.name] + options + command
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=200)
        outcome = (done.returncode, done.stdout, done.stderr, tree(directory))
        return outcome, read_report(report.name) if options is not None else None


def difference(native, under):
    for what, alone, with_replicas in zip(('exit status', 'output', 'complaints'), native, under):
        if alone != with_replicas:
            return f'{what}: {with_replicas}, not {alone}'
    files, others = native[3], under[3]
    differing = [name for name in files.keys() | others.keys()
                 if files.get(name) != others.get(name)]
    return f'files {differing}' if differing else None


# --- The kernel's record ---

# What ReplicaWorld and its queries do on the replica's behalf.
OWN_CALLS = {'close_range', 'unshare', 'setpgid', 'mprotect', 'mmap', 'newfstatat', 'faccessat2',
             'openat', 'close', 'fcntl'}
# They are among the unsafe ones, which the page does not list.
UNSAFE = {109: 'setpgid', 272: 'unshare'}


def call_table():
    names, executed = dict(UNSAFE), set(OWN_CALLS)
    for line in open(table):
        row = re.match(r'\| (.*) \| (.*) \| (.*) \|', line)
        for name, number in re.findall(r'`(\w+)` \((\d+)\)', row[1]) if row else ():
            names[int(number)] = name
            if 'executed' in row[3]:
                executed.add(name)
    return names, executed


def forbidden(name, executed, a):
    """Why a call should not have been executed; None if it may."""
    if name not in executed:
        return 'not allowed by the table'
    writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    if name in ('open', 'openat') and a[1 if name == 'open' else 2] & writes:
        return 'opens to write'
    if name == 'fcntl' and a[1] not in (0, 1030):
        return 'changes an open file'
    if name == 'kill' and a[1] != 0:
        return 'sends a signal'
    if name == 'mmap' and a[2] & 2 and a[3] & 0xf in (1, 3) and not a[3] & 0x20:
        return 'maps a file to write'
    return None


class Record:
    """The system calls of the processes written to `pids`, from a tracefs instance of our own."""

    def __init__(self):
        self.directory = TRACEFS / 'instances' / f'isolation-{os.getpid()}'
        self.directory.mkdir()
        self.pids = self.directory / 'set_event_pid'
        (self.directory / 'buffer_size_kb').write_text('16384')
        self.pids.write_text('1\n')  # an empty list would mean everybody
        (self.directory / 'events/raw_syscalls/sys_enter/enable').write_text('1')

    def calls(self):
        pattern = re.compile(r'-(\d+) .*sys_enter: NR (-?\d+) \(([^)]*)\)')
        with open(self.directory / 'trace') as lines:
            for line in lines:
                found = pattern.search(line)
                if found and found[1] != '1':
                    yield int(found[2]), [int(a, 16) for a in found[3].split(',')]

    def close(self):
        (self.directory / 'events/raw_syscalls/sys_enter/enable').write_text('0')
        self.directory.rmdir()


def make_record():
    try:
        return Record()
    except OSError as error:
        print(f'no record of executed system calls, for tracefs cannot be used ({error})')
        return None


def check_record():
    record = make_record()
    if record is None:
        return
    try:
        run_world(200, ['--interval-us', '500', '--event-pids', str(record.pids)])
        names, executed = call_table()
        count, seen = 0, {}
        for number, arguments in record.calls():
            name = names.get(number, f'#{number}')
            why = forbidden(name, executed, arguments)
            if why:
                sys.exit(f'a replica executed {name}({", ".join(map(hex, arguments))}): {why}')
            seen[name] = seen.get(name, 0) + 1
            count += 1
        if count < 100 or 'close_range' not in seen:
            sys.exit(f'the record has only {seen}')
        print('executed by replicas:', dict(sorted(seen.items(), key=lambda item: -item[1])))
    finally:
        record.close()


# --- Promptness ---

def check_end_of_stream(name, reader, writer):
    """Who reads the output sees its end as soon as the program closes it, whatever replicas do."""
    command = [native_replicas, '--interval-us', '1000', '--milliseconds', '1000',
               world, 'closes', '1.5']
    process = subprocess.Popen(command, stdout=writer, stderr=subprocess.PIPE)
    writer.close()
    reader.read(1)
    seen = time.monotonic()
    late = seen - float(process.stderr.readline())
    process.communicate()
    if process.returncode != 0:
        sys.exit(f'world closes: exit status {process.returncode}')
    print(f'the end of a {name} was seen after {late * 1000:.1f} ms')
    # Replicas live a second, and half a second of the program is left.
    if late > 0.25:
        sys.exit('replicas keep it open')


def check_promptness():
    ends = os.pipe()
    check_end_of_stream('pipe', open(ends[0], 'rb'), open(ends[1], 'wb'))
    ours, theirs = socket.socketpair()
    check_end_of_stream('socket', ours.makefile('rb'), theirs)


def main():
    native, _ = run_world(300)
    if native[0] != 42 or native[2]:
        sys.exit(f'world alone: exit status {native[0]}, {native[2]}')
    replicas, rounds = 0, 0
    while replicas < 1000:
        under, report = run_world(300, ['--interval-us', '500', '--milliseconds', '8',
                                        '--seed', str(1 + rounds)])
        rounds += 1
        if told := difference(native, under):
            sys.exit(f'run {rounds} differs: {told} {under[2].decode()}')
        lived = int(report['replicas'][0])
        replicas += lived
        print(f'{lived} replicas, settling {" ".join(report["settling_us"])} us, ends',
              report['end'])
        if lived == 0 or rounds > 20:
            sys.exit(f'only {replicas} replicas in {rounds} runs')
    check_promptness()
    check_record()


if __name__ == '__main__':
    main()
