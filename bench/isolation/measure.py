#!/usr/bin/env python3
"""Real programs with replicas: is their output the same as without, and what ended the samples?

    measure.py [--native BUILD/tests/isolation/native-replicas | --shadowprof BUILD/shadowprof]
               [--seconds N] [PROGRAM…]

With --native, replicas run their own code (so that a bare thousand of them, and system calls in
great numbers, take seconds); with --shadowprof they are those of mode shadow. Prints, for each
program, how many replicas lived, whether all was as without, and the reasons by share.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

# One connection each, so that a core is left for the replicas, which have the lowest priority.
PYTHON = '''
import json, hashlib, os, sys, tempfile
digest = hashlib.sha256()
with open('log', 'w') as log:
    for i in range(int(sys.argv[1])):
        text = json.dumps({str(k): k * i for k in range(200)})
        with open('data', 'w') as f:
            f.write(text)
        with open('data') as f:
            digest.update(repr(sorted(json.load(f).items())).encode())
        os.rename('data', 'old')
        print(i, digest.hexdigest(), file=log)
print(digest.hexdigest())
'''

SQL = '''
PRAGMA journal_mode=%s;
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
CREATE INDEX i ON t(b);
''', '''
BEGIN;
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 400)
INSERT INTO t(b, c) SELECT 'text ' || ((x * 7919 + %d) %% 10007), x * 0.5 FROM n;
COMMIT;
UPDATE t SET c = c + 1 WHERE a %% 97 = %d;
''', '''
SELECT count(*), sum(c), min(b), max(b) FROM t;
PRAGMA integrity_check;
'''


def wait_for(condition, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


class Batch:
    """A program that does its work and ends: its output and files must be the same."""

    def __init__(self, name, command, files=(), standard_input=None):
        self.name, self.command, self.files = name, command, files
        self.standard_input = standard_input

    def run(self, runner, directory):
        with open(self.standard_input or os.devnull, 'rb') as source:
            done = subprocess.run(runner + self.command, cwd=directory, stdin=source,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=280)
        contents = [(directory / name).read_bytes() for name in self.files]
        return done.returncode, done.stdout, contents


class Server:
    """A program that serves: its answers must be the same, under load."""

    def __init__(self, name, command, load, ask, stop, port):
        self.name, self.command, self.load = name, command, load
        self.ask, self.stop, self.port = ask, stop, port

    def is_up(self):
        import socket
        try:
            socket.create_connection(('127.0.0.1', self.port), 0.2).close()
            return True
        except OSError:
            return False

    def run(self, runner, directory):
        server = subprocess.Popen(runner + self.command, cwd=directory, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            if not wait_for(self.is_up):
                return 'did not start'
            load = subprocess.run(self.load, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=200)
            errors = [line for line in load.stdout.decode(errors='replace').splitlines()
                      if re.search('error|Non-2xx', line, re.I)]
            return load.returncode, errors, self.ask(directory)
        finally:
            # The program itself, not a wrapper that runs it.
            subprocess.run(self.stop, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            server.wait(60)


def ask_redis(_):
    def cli(*words, **more):
        return subprocess.run(['redis-cli', '-p', '7777', *words], stdout=subprocess.PIPE,
                              timeout=60, **more).stdout
    commands = ''.join(f'SET key{i} {i * i}\nINCR count\nLPUSH list {i}\nZADD set {i % 17} {i}\n'
                       for i in range(3000))
    cli('FLUSHALL')
    cli(input=commands.encode())
    return [cli('DEBUG', 'DIGEST'), cli('GET', 'count'), cli('LLEN', 'list'), cli('DBSIZE')]


def ask_nginx(directory):
    import urllib.request
    answers = []
    for name in ('index.html', 'big', 'missing'):
        try:
            answers.append(urllib.request.urlopen(f'http://127.0.0.1:7778/{name}', timeout=10).read())
        except urllib.error.HTTPError as error:
            answers.append(error.code)
    return answers


NGINX = '''
daemon off; master_process off; error_log error.log; pid nginx.pid;
events { worker_connections 256; }
http {
  access_log access.log; sendfile on;
  client_body_temp_path a; proxy_temp_path b; fastcgi_temp_path c; uwsgi_temp_path d;
  scgi_temp_path e;
  server { listen 127.0.0.1:7778; root %s; }
}
'''


def prepare(directory, seconds):
    rounds = max(1, int(seconds * 40))
    (directory / 'program.py').write_text(PYTHON)
    for mode in ('DELETE', 'WAL'):
        (directory / f'{mode}.sql').write_text(
            SQL[0] % mode + ''.join(SQL[1] % (i, i) for i in range(rounds)) + SQL[2])
    text = b''.join(b'line %d of %d\n' % (i * i % 1000003, i) for i in range(300000))
    (directory / 'text').write_bytes(text * max(1, int(seconds / 2)))
    (directory / 'index.html').write_text('hello\n' * 50)
    (directory / 'big').write_bytes(text[:200000])
    for name in 'abcde':
        (directory / name).mkdir(exist_ok=True)
    (directory / 'nginx.conf').write_text(NGINX % directory)


def programs(directory, seconds):
    python = shutil.which('python3')
    duration = str(int(seconds))
    everything = [
        Batch('bzip2', ['bzip2', '-9', '-k', '-f', 'text'], ['text.bz2']),
        Batch('xz', ['xz', '-1', '-T1', '-k', '-f', 'text'], ['text.xz']),
        Batch('sqlite3', ['sqlite3', 'journal.db'], ['journal.db'], directory / 'DELETE.sql'),
        Batch('sqlite3 WAL', ['sqlite3', 'wal.db'], ['wal.db'], directory / 'WAL.sql'),
        Batch('python3', [os.path.realpath(python), 'program.py', str(int(seconds * 500))],
              ['log', 'old']),
        Batch('perl', ['perl', '-ne', '$h{$_ % 1000} .= substr($_, 0, 3); END { print map { length($h{$_}), "\\n" } sort keys %h }', 'text']),
        Server('redis-server', ['redis-server', '--port', '7777', '--save', '', '--appendonly',
                                'yes', '--appendfsync', 'no', '--enable-debug-command', 'yes'],
               ['redis-benchmark', '-p', '7777', '-q', '-t', 'set,get,lpush,zadd', '-n',
                str(int(seconds * 4000)), '-c', '1'], ask_redis, ['redis-cli', '-p', '7777', 'shutdown', 'nosave'], 7777),
        Server('nginx', ['nginx', '-p', str(directory), '-c', 'nginx.conf'],
               ['wrk', '-t1', '-c1', f'-d{duration}s', 'http://127.0.0.1:7778/index.html'],
               ask_nginx, ['nginx', '-p', str(directory), '-c', 'nginx.conf', '-s', 'stop'], 7778),
    ]
    return [program for program in everything
            if shutil.which(program.command[0].split('/')[-1]) or os.path.exists(program.command[0])]


def clean(directory):
    for name in ('journal.db', 'wal.db', 'log', 'old', 'data', 'appendonlydir', 'dump.rdb',
                 'wal.db-wal', 'wal.db-shm'):
        path = directory / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


class Native:
    def __init__(self, program, options):
        self.program, self.options = program, options

    def runner(self, directory):
        return [self.program, '--report', str(directory / 'report'), '--replicas', '100000',
                '--milliseconds', '2000', '--calls', '5000', '--interval-us', '4000']

    def reasons(self, directory):
        found, replicas = {}, 0
        for line in open(directory / 'report'):
            words = line.split(maxsplit=2)
            if words[0] == 'end':
                found[words[2].strip()] = int(words[1])
            elif words[0] == 'replicas':
                replicas = int(words[1])
        return replicas, found


class Shadowprof:
    def __init__(self, program, options):
        self.program, self.options = program, options

    def runner(self, directory):
        return [self.program, 'run', '-m', 'shadow', '-o', str(directory / 'profile.json'),
                '--overhead', '20%', *self.options, '--']

    def reasons(self, directory):
        profile = json.load(open(directory / 'profile.json'))
        ends = profile['coverage']['ended']
        return sum(ends.values()), ends


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--native', type=os.path.abspath)
    parser.add_argument('--shadowprof', type=os.path.abspath)
    parser.add_argument('--seconds', type=float, default=10)
    parser.add_argument('--option', action='append', default=[])
    parser.add_argument('programs', nargs='*')
    arguments = parser.parse_args()
    tool = (Native(arguments.native, arguments.option) if arguments.native
            else Shadowprof(arguments.shadowprof, arguments.option))
    failed = False
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        prepare(directory, arguments.seconds)
        for program in programs(directory, arguments.seconds):
            if arguments.programs and program.name not in arguments.programs:
                continue
            clean(directory)
            native = program.run([], directory)
            clean(directory)
            under = program.run(tool.runner(directory), directory)
            same = native == under
            failed |= not same
            replicas, reasons = tool.reasons(directory)
            print(f'{program.name}: {replicas} replicas, {"the same" if same else "DIFFERENT"}')
            if not same:
                print(f'    {str(native)[:300]}\n    {str(under)[:300]}')
            total = sum(reasons.values())
            for reason, count in sorted(reasons.items(), key=lambda item: -item[1])[:8]:
                print(f'    {100 * count / total:5.1f} %  {reason}')
            sys.stdout.flush()
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
