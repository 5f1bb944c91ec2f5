"""run ends as the program ends: with its status, or 128 + the signal that killed it."""

import signal

from vocabulary import check_equal, same_as_native, scratch

with scratch():
    for script, status in (
        ("exit 7", 7),
        ("kill -KILL $$", 128 + signal.SIGKILL),
        ("kill -TERM $$", 128 + signal.SIGTERM),
        ("kill -SEGV $$", 128 + signal.SIGSEGV),
        ("echo several; echo lines >&2; exit 255", 255),
    ):
        profile = same_as_native(["sh", "-c", script])
        check_equal(f"the status of {script!r}", profile["targets"][0]["exit"], status)
