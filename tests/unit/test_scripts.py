"""Each script of ``scripts/`` can be started, shows its usage, and refuses unknown options."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted(Path(__file__).parents[2].joinpath("scripts").glob("[!_]*.py"))
# It takes three positional arguments and no option, because only bench_cutover starts it.
WITHOUT_OPTIONS = {"bench_bare.py"}


def outcome(script: Path, arguments: list[str], monkeypatch) -> int | str | None:
    """Run a script to its end in this process, and return its exit code."""
    monkeypatch.setattr(sys, "argv", [str(script), *arguments])
    monkeypatch.setattr(sys, "path", [str(script.parent), *sys.path])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    return ended.value.code


@pytest.mark.parametrize("script", [each for each in SCRIPTS if each.name not in WITHOUT_OPTIONS], ids=lambda p: p.stem)
def test_a_script_shows_its_usage_and_refuses_unknown_options(script, monkeypatch, capsys):
    """With ``--help`` a script shows its usage and ends with exit code 0.

    With an unknown option it ends with exit code 2 and prints nothing on stdout.
    """
    assert (outcome(script, ["--help"], monkeypatch) or 0) == 0
    assert capsys.readouterr().out.startswith(f"usage: {script.name} ")
    assert outcome(script, ["--no-such-option"], monkeypatch) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "--no-such-option" in err or "the following arguments are required" in err


@pytest.mark.parametrize("name", WITHOUT_OPTIONS)
def test_a_script_without_options_can_be_imported(name):
    """A script that has no options can be imported: its imports succeed, and its ``main`` is not run."""
    assert callable(runpy.run_path(str(SCRIPTS[0].with_name(name)))["main"])
