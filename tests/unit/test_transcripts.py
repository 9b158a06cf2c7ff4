"""What users see stays as the transcripts in tests/data/transcripts show it.

A change that is meant is written into the files with ``TRANSCRIPTS=write``; the commit then shows the difference.
"""

from __future__ import annotations

import os

import pytest

from tests.support.transcript import FOLDER, run

_FILES = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", _FILES, ids=[path.stem for path in _FILES])
def test_commands_print_what_the_transcript_shows(path, tmp_path, monkeypatch):
    """Each command line of a transcript has the stdout, stderr and exit code that the transcript shows."""
    shown = path.read_text(encoding="utf-8")
    now = run(shown, tmp_path, monkeypatch)
    if os.environ.get("TRANSCRIPTS") == "write":
        path.write_text(now, encoding="utf-8")
    else:
        assert now == shown


def test_transcripts_have_many_command_lines():
    """The transcripts together run at least 150 command lines."""
    lines = [line for path in _FILES for line in path.read_text(encoding="utf-8").splitlines()]
    assert sum(line.startswith("$ ") and not line.startswith("$ cat ") for line in lines) >= 150
