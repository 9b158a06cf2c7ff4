"""Two steps of action.yml, which shows a dry run in a pull request. The argument names the step.

- report: appends the plan to the job's summary, and facts about the plan to the step's outputs.
- comment: creates the spec's comment in the pull request, or updates it.

Both read environment variables that action.yml and the runner set.
"""

from __future__ import annotations

import argparse
import json
import os
import posixpath
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from migrate_groups.files.runs import plan_json

_AUTHOR = "github-actions[bot]"  # the user of github.token


def report() -> None:
    """Write ``comment.md`` beside the plan, append it to the job's summary, and write the step's outputs."""
    folder = Path(os.environ["FOLDER"])
    text = _comment((folder / "plan.md").read_text(encoding="utf-8"))
    (folder / "comment.md").write_text(text, encoding="utf-8")
    _append("GITHUB_STEP_SUMMARY", text)
    saved = folder / "plan.json"
    if saved.exists():
        # The plans of a fleet are files in a folder.
        plans = [plan_json.load(each).plan for each in (saved.glob("*.json") if saved.is_dir() else [saved])]
        changed = any(plan.to_write() for plan in plans)
        refused = os.environ["EXIT_CODE"] == "3"  # the plan of a group that is refused is not in the folder
        intent = "" if saved.is_dir() else plans[0].intent
        facts = {"plan": saved, "intent": intent, "changed": json.dumps(changed), "refused": json.dumps(refused)}
        _append("GITHUB_OUTPUT", "".join(f"{name}={value}\n" for name, value in facts.items()))


def _comment(plan: str) -> str:
    """Return the text of the comment, for a plan in Markdown.

    Its first line is hidden, and is the same for every plan of the spec.
    """
    # Quoted, because a path may contain characters that end an HTML comment.
    spec = quote(os.fsencode(posixpath.normpath(os.environ["SPEC"])))
    server, repository, run = (os.environ[f"GITHUB_{name}"] for name in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    code = os.environ["EXIT_CODE"]
    without = f"### Consumer groups: no plan\n\nThe dry run ended with exit code {code}: see its log.\n"
    return (
        f"<!-- migrate-groups: the plan of {spec} -->\n"
        f"{plan or without}\n"
        f"`{spec}` at {os.environ['COMMIT']}, [run {run}]({server}/{repository}/actions/runs/{run})\n"
    )


def comment() -> None:
    """Create the comment in the pull request, or update our comment with the same first line."""
    path = Path(os.environ["FOLDER"]) / "comment.md"
    marker = path.read_text(encoding="utf-8").partition("\n")[0]
    issues = f"repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    comments = f"{issues}/{os.environ['PULL_REQUEST']}/comments"
    lines = _gh("--paginate", "--jq", ".[]", f"{comments}?per_page=100").split("\n")
    there = [each["id"] for each in map(json.loads, filter(None, lines)) if _is_ours(each, marker)]
    where = ["PATCH", f"{issues}/comments/{there[0]}"] if there else ["POST", comments]
    _gh("--silent", "--field", f"body=@{path}", "--method", *where)


def _is_ours(found: dict[str, Any], marker: str) -> bool:
    # The author is checked, because others can copy the first line, and could later edit a comment of their own.
    return (found["user"] or {}).get("login") == _AUTHOR and found["body"].startswith(marker)


def _gh(*arguments: str) -> str:
    done = subprocess.run(["gh", "api", *arguments], stdout=subprocess.PIPE, encoding="utf-8", check=False)
    if done.returncode:
        sys.exit(f"error: gh api ended with exit code {done.returncode}: the job needs pull-requests: write")
    return done.stdout


def _append(variable: str, text: str) -> None:
    with Path(os.environ[variable]).open("a", encoding="utf-8") as file:
        file.write(text)


def main() -> None:
    """Run the step that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("report", "comment"))
    {"report": report, "comment": comment}[parser.parse_args().step]()


if __name__ == "__main__":
    main()
