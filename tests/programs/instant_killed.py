"""kill -9 of shadowprof at random moments of a session in mode instant: as in mode burst, the program goes
on as if nothing had happened."""

import os
import runpy

os.environ["MODE"] = "instant"
runpy.run_path(os.path.join(os.path.dirname(__file__), "burst_killed.py"))
