"""The servers that benches ask: their configurations, and when they are ready."""

import glob
import os
import shutil
import socket
import subprocess
import time

QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def await_answer(port, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise SystemExit(f"nobody answers at port {port}")


def nginx(folder, port, server, http="", processes="master_process off"):
    """The command of one that keeps all its files in the folder. `server` and `http` are what stands in these parts of
    the configuration."""
    path = os.path.join(folder, "nginx.conf")
    with open(path, "w", encoding="ascii") as file:
        file.write(f"daemon off; {processes}; user root; pid {folder}/nginx.pid; error_log {folder}/error;\n"
                   "events { worker_connections 256; }\n"
                   f"http {{ access_log off; {http}\n"
                   f"server {{ listen 127.0.0.1:{port}; {server} }} }}\n")
    return ["nginx", "-p", folder, "-c", path]


class Postgres:
    """A cluster of databases in a new folder. It does not run as root."""

    tools = max(glob.glob("/usr/lib/postgresql/*/bin"), default=None)  # None: it is not installed

    def __init__(self, parent, port):
        self.folder, self.port = os.path.join(parent, "postgres"), port
        self.data = os.path.join(self.folder, "data")
        self.user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"] * (os.geteuid() == 0)

    def command(self):
        if not os.path.exists(self.data):
            os.mkdir(self.folder)
            if self.user:
                os.chmod(os.path.dirname(self.folder), 0o755)
                shutil.chown(self.folder, "postgres")
            self.run("initdb", "-A", "trust", "-U", "bench", "-D", self.data)
        return [*self.user, f"{self.tools}/postgres", "-D", self.data, "-p", str(self.port), "-k", self.folder]

    def run(self, tool, *options):
        subprocess.run([*self.user, f"{self.tools}/{tool}", *options], cwd=self.folder, check=True, **QUIET)

    def await_ready(self):
        await_answer(self.port)
        while subprocess.run([f"{self.tools}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)],
                             check=False).returncode:
            time.sleep(0.02)

    def pgbench(self, *options):
        self.run("pgbench", "-h", "127.0.0.1", "-p", str(self.port), "-U", "bench", *options, "postgres")

    def stop(self):
        self.run("pg_ctl", "stop", "-m", "fast", "-D", self.data)
