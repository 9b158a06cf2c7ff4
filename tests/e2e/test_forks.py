"""A process forked by `forks.Popen` behaves like one started by ``subprocess.Popen``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support import forks
from tests.support.broker_world import until
from tests.support.processes import children_of, gone

FACTS = """
import atexit, json, os, random, signal, sys, tempfile, threading
print(json.dumps({
    "arguments": sys.argv, "main": __name__, "package": __package__, "folder": os.getcwd(), "path": sys.path[0],
    "environment": {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")},
    "temporary": tempfile.gettempdir(),
    "signals": [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
    "threads": threading.active_count(),
    "streams": [[each.encoding, each.errors, each.line_buffering, each.fileno(), each is original]
        for each, original in [
            (sys.stdin, sys.__stdin__), (sys.stdout, sys.__stdout__), (sys.stderr, sys.__stderr__)]],
    "descriptors": [number for number in range(3, 256) if os.path.exists(f"/proc/self/fd/{number}")],
    "said": sys.stdin.read(),
}))
sys.stderr.write("warned")
atexit.register(print, "over")
"""
ENDS = [
    "raise SystemExit(7)",
    "raise SystemExit('why')",
    "raise SystemExit",
    "raise SystemExit(-1)",
    "1 / 0",
    "raise KeyboardInterrupt",
    "import os; os._exit(9)",
    "import os; os.kill(os.getpid(), 9)",
    "import os; os.kill(os.getpid(), 11)",
    "import sys; print('x'); sys.stdout.close()",
    "import os; os.close(1); print('x')",
]
WAITING = "print('there', flush=True)\nimport time\nwhile True: time.sleep(60)\n"


def start(popen: type, folder: Path, code: str, **options: object) -> subprocess.Popen[str]:
    (folder / "module_of_a_test.py").write_text(code)
    command = [sys.executable, "-m", "module_of_a_test", "first", "second argument"]
    pipe = subprocess.PIPE
    return popen(command, cwd=folder, stdin=pipe, stdout=pipe, stderr=pipe, text=True, **options)


def test_fork_starts_like_a_subprocess(tmp_path, monkeypatch):
    """A process forked by `forks.Popen` has the same arguments, environment, folder and signals as a subprocess.

    It also has the same streams, open descriptors and output.
    """
    monkeypatch.setenv("HERE", "not there")
    environment = {**os.environ, "THERE": "größe", "TMPDIR": str(tmp_path)}
    del environment["HERE"]
    tempfile.gettempdir()
    said = [
        start(popen, tmp_path, FACTS, env=environment).communicate("one\ntwo\n")
        for popen in (subprocess.Popen, forks.Popen)
    ]
    started, forked = ((json.loads(out.partition("\n")[0]), out.partition("\n")[2], err) for out, err in said)
    assert forked == started
    assert forked[1:] == ("over\n", "warned")


def test_passed_descriptors_keep_their_numbers(tmp_path):
    """The descriptors in ``pass_fds`` keep their numbers in the forked process, and no others are open."""
    reader, writer = os.pipe()
    code = f"import os\nos.write({writer}, b'through')\nprint(os.path.exists('/proc/self/fd/{reader}'))"
    with start(forks.Popen, tmp_path, code, pass_fds=[writer]) as process:
        os.close(writer)
        assert process.stdout is not None
        assert process.stdout.read() == "False\n"
    with os.fdopen(reader) as stream:
        assert stream.read() == "through"


@pytest.mark.parametrize("code", ENDS)
def test_fork_ends_like_a_subprocess(tmp_path, code):
    """A process forked by `forks.Popen` has the same exit code or signal, and the same message, as a subprocess."""
    ends = []
    for popen in (subprocess.Popen, forks.Popen):
        with start(popen, tmp_path, code) as process:
            out, err = process.communicate(timeout=60)
        ends.append((process.returncode, out, "Traceback" in err, err.splitlines()[-1:]))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_signal_ends_only_its_process(tmp_path, number):
    """A signal that is sent to one forked process ends this process only. Other forked processes go on."""
    with start(forks.Popen, tmp_path, WAITING) as other, start(forks.Popen, tmp_path, WAITING) as process:
        for each in (other, process):
            assert each.stdout is not None
            assert each.stdout.readline() == "there\n"
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.send_signal(number)
        assert process.wait(60) == process.poll() == -number
        assert other.poll() is None
        other.kill()


def test_changed_python_startup_variables_are_refused(tmp_path):
    """`forks.Popen` refuses an environment in which a variable is changed that Python reads only when it starts.

    A fork would ignore the change.
    """
    with pytest.raises(AssertionError, match="PYTHONUTF8 takes a cold start"):
        start(forks.Popen, tmp_path, "", env={**os.environ, "PYTHONUTF8": "1"})


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells")
def test_server_has_one_thread_and_its_forks_end_with_it(tmp_path):
    """The fork server has one thread, because a fork copies only one thread.

    When the server ends, its forks end, too.
    """
    with start(forks.Popen, tmp_path, WAITING) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        pid = vars(forks.server())["_forkserver_pid"]
        assert len(list(Path(f"/proc/{pid}/task").iterdir())) == 1
        assert process.pid in children_of(pid)
        forks.end_server()
        assert process.wait(60) == -signal.SIGKILL
        until(lambda: gone(process.pid))
    assert gone(pid)
