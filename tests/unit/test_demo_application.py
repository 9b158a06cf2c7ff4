"""The demo's applications end when the demo ends, even if the demo is killed or no broker answers."""

from __future__ import annotations

import subprocess
import sys

from tests.support.broker_world import until
from tests.support.processes import gone

_SECONDS = 30
_APPLICATION = """
import os, time
from migrate_groups.demo.application import Stopped
stopped = Stopped()
print(os.getpid(), flush=True)
while not stopped.now:
    time.sleep(0.01)
"""
_WITHOUT_BROKERS = """
import confluent_kafka
from migrate_groups.demo import application
application._STOP_SECONDS = 0.1
stopped = application.Stopped()
brokers = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}
print("ready", flush=True)
confluent_kafka.Consumer(brokers).commit(offsets=[confluent_kafka.TopicPartition("t", 0, 1)], asynchronous=False)
"""
_DEMO = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_APPLICATION!r}])"


def test_an_application_ends_when_the_demo_is_killed():
    """If the demo is killed with SIGKILL, its applications end, because they notice that their parent has changed."""
    with subprocess.Popen([sys.executable, "-c", _DEMO], stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout
        application = int(demo.stdout.readline())
        assert not gone(application)
        demo.kill()
        until(lambda: gone(application))


def test_an_application_whose_brokers_are_gone_ends_too():
    """SIGTERM ends an application that commits while no broker answers, although librdkafka's call never returns."""
    with subprocess.Popen([sys.executable, "-c", _WITHOUT_BROKERS], stdout=subprocess.PIPE, text=True) as application:
        assert application.stdout
        assert application.stdout.readline() == "ready\n"
        application.terminate()
        try:
            assert application.wait(_SECONDS) == 1
        finally:
            application.kill()
