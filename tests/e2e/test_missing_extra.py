"""Without the extra ``spark``, a command that needs it ends with a one-line error before it does anything."""

from __future__ import annotations

import importlib.util

import pytest

from tests.support.cli import CliHere


@pytest.mark.parametrize("missing", ["pyspark", "platformdirs"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["history", "--log", "log", "-o", "out", "--bootstrap-server", "h:1"],
        ["audit", "split.toml.run", "--bootstrap-server", "h:1"],
        ["reconcile", "before.csv", "after.csv", "-o", "out"],
    ],
    ids=" ".join,
)
def test_error_names_the_command_that_installs_the_extra(tmp_path, monkeypatch, missing, arguments):
    """Without the extra ``spark``, a command that needs it ends with exit code 2. Nothing is written.

    The error contains the pip command that installs the extra.
    """
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == missing else found(name, *more)
    )
    refused = CliHere(tmp_path).fails(*arguments, code=2)
    assert refused.endswith("is not installed: run pip install 'platformdirs>=4' 'pyspark>=4.0,<5'")
    assert list(tmp_path.iterdir()) == []
