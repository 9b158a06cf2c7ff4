"""The demo's applications end when the demo ends, in whatever way."""

from __future__ import annotations

import subprocess
import sys

from tests.support.broker_world import until
from tests.support.processes import gone

_APPLICATION = """
import os, time
from migrate_groups.demo.application import Stopped
stopped = Stopped()
print(os.getpid(), flush=True)
while not stopped.now:
    time.sleep(0.01)
"""
_DEMO = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_APPLICATION!r}])"


def test_an_application_ends_when_the_demo_is_killed():
    """A demo that gets SIGKILL can't stop its applications; they notice that their parent process has changed."""
    with subprocess.Popen([sys.executable, "-c", _DEMO], stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout
        application = int(demo.stdout.readline())
        assert not gone(application)
        demo.kill()
        until(lambda: gone(application))
