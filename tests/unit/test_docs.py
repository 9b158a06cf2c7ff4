"""The README and the pages in docs/ are short enough and current, and their links lead to pages that exist."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
from typer._click.exceptions import UsageError

from migrate_groups.cli.registry import GROUPS, command_line
from migrate_groups.planning.checks.registry import REGISTRY
from migrate_groups.planning.checks.rule import Scope
from tests.support.pages import commands
from tests.support.sources import texts

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *DOCS]
COMMANDS = typer.main.get_group(command_line()).commands
# Options of other programs and of our scripts, which pages name by themselves.
OTHERS = {"--conf", "--export", "--from-file", "--include", "--kafka", "--long", "--partitions", "--user"}
# Those of kafka-consumer-groups, on the page that compares it with ours.
OTHERS |= {"--delete", "--delete-offsets", "--describe", "--execute", "--list", "--new-consumer", "--reset-offsets"}
OTHERS |= {"--validate-regex"}
# Those of scripts/any_order.py.
OTHERS |= {"--broker", "--revert"}


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    made = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in plain]
    return set(made) | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def tables_of_checks(page: Path) -> list[list[list[str]]]:
    """Return the tables of a page whose first column is ``check``: a list of rows, each a list of cells."""
    tables = re.findall(r"^\| check \|.*\n\|[-|]+\n((?:\|.*\n)+)", page.read_text(), re.M)
    return [[row.strip("|").split(" | ") for row in table.replace("| ", "|", 1).splitlines()] for table in tables]


def names_of(*scopes: Scope) -> list[str]:
    """Return the names of the checks of these scopes, each once, in the order of the registry."""
    return list(dict.fromkeys(rule.name for rule in REGISTRY if set(scopes) & set(rule.scopes)))


def test_readme_is_read_in_one_sitting():
    """The README has at most 150 lines and 1,200 words."""
    text = README.read_text()
    assert len(text.splitlines()) <= 150
    assert len(text.split()) <= 1200


def test_readme_lists_every_command_in_its_group():
    """The README's table of commands has the sections of ``--help``, each with its commands in the same order."""
    table = README.read_text().split("## Commands")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([A-Z].*?) \| (.*) \|$", table, re.M)
    listed = {title: re.findall(r"`([a-z-]+)`", cells) for title, cells in rows}
    assert listed == {title: list(commands) for title, commands in GROUPS.items()}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    """Each relative link of a page leads to a file that exists, and its anchor to a heading of that file."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", [README, *DOCS], ids=named)
def test_options_exist(page):
    """Each option that a page names in inline code is an option of a command or is listed in `OTHERS`."""
    existing = {name for command in COMMANDS.values() for option in command.params for name in option.opts}
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.M | re.S)
    used = set(re.findall(r"`(--[a-z][a-z-]+)", text))
    assert used - existing - OTHERS - {"--version", "--help"} == set()


def command_lines(page: Path) -> list[list[str]]:
    """Return the arguments of each ``migrate-groups`` command in a page's command lines."""
    parts = [part for line in commands(page.read_text()) for part in re.split(r" (?:\||&&) ", line)]
    ours = [part for part in parts if part.startswith("migrate-groups ")]
    words = [shlex.split(re.sub(r" [<>] .*", "", part))[1:] for part in ours]
    return [each for each in words if each[0] in COMMANDS]


@pytest.mark.parametrize("page", [README, *DOCS], ids=named)
def test_command_lines_can_be_called(page):
    """Each ``migrate-groups`` command line on a page has arguments and options that the command accepts."""
    for name, *arguments in command_lines(page):
        try:
            COMMANDS[name].make_context(name, list(arguments))
        except UsageError as error:
            pytest.fail(f"migrate-groups {shlex.join([name, *arguments])}: {error.format_message()}")


def test_command_lines_are_found():
    """`command_lines` finds a known command line in the README, and more than 25 command lines in docs/."""
    assert ["migrate", "split.toml", "--dry-run"] in command_lines(README)
    assert sum(len(command_lines(page)) for page in DOCS) > 25


def test_no_message_or_help_points_into_the_docs():
    """No text of the program, and no help of a command, names a file in docs/, which an installed package lacks.

    Only docstrings and comments may do so.
    """
    found = [
        f"{module}, line {node.lineno}"
        for module, constants in texts().items()
        for node in constants
        if "docs/" in str(node.value)
    ]
    helps = [
        text for each in COMMANDS.values() for text in (each.help, *(getattr(one, "help", "") for one in each.params))
    ]
    assert found == []
    assert [text for text in helps if "docs/" in str(text)] == []


def test_getting_started_calls_the_applications_as_they_expect():
    """docs/getting-started.md starts each application with a group, a client id, a file and topics, in this order."""
    text = (ROOT / "docs" / "getting-started.md").read_text()
    lines = re.findall(r"^(?:consume\(\) \{ .*|consume .*|python -m migrate_groups\.demo\.application .*)$", text, re.M)
    script = "\n".join(['python() { echo "$@"; }', *(line.removesuffix(" &") for line in lines)])
    environment = {"MIGRATE_GROUPS_BOOTSTRAP_SERVER": "localhost:9092"}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True)
    calls = [line.split()[4:] for line in done.stdout.splitlines()]
    assert len(calls) == len(lines) - 1
    for group, client_id, ledger, *topics in calls:
        assert [group, client_id] == [each.removesuffix(".txt") for each in (group, client_id)]
        assert ledger.endswith(".txt")
        assert {*topics} <= {"invoices", "payments.card", "search.clicks"}


def test_the_table_of_checks_of_a_hand_over_has_the_checks_of_the_registry():
    """The first table of docs/reference/checks.md has the checks of a hand-over, in the order in which plans show them.

    The second table has those that only a move or a fail-over has, and others that differ there.
    """
    of_hand_over, of_move, _ = tables_of_checks(ROOT / "docs" / "reference" / "checks.md")
    names = [row[0].strip() for row in of_hand_over]
    assert names == names_of(Scope.HAND_OVER, Scope.BARRIER, Scope.JOURNAL, Scope.LIVE_SOURCE, Scope.APPLICATION)
    named_there = {row[0].strip() for row in of_move}
    checks = set(names_of(Scope.SOURCE, Scope.MIRROR, Scope.TARGET, Scope.FAIL_OVER))
    assert named_there <= checks <= {*names, *named_there}


def test_the_table_of_checks_of_the_ways_back_has_the_checks_of_the_registry():
    """The third table of docs/reference/checks.md has each check of a way back, with its commands.

    Of `hand-back` it has those that a hand-over has not, or judges by other facts. The page says that it has the rest.
    """
    *_, of_ways_back = tables_of_checks(ROOT / "docs" / "reference" / "checks.md")
    both = (Scope.DELETE_OF_RUN, Scope.DELETE_OF_GROUP)
    scopes = {scope.value: (scope,) for scope in (Scope.ROLLBACK, Scope.HAND_BACK, *both)} | {"delete-offsets": both}
    shown = {
        (name.strip(), scope)
        for name, commands_of_row, *_ in of_ways_back
        for command in commands_of_row.split(", if ")[0].split(", ")
        for scope in scopes[command.strip()]
    }
    made = {(rule.name, scope) for rule in REGISTRY for scope in rule.scopes if scope in (Scope.ROLLBACK, *both)}
    as_in_hand_over = {rule.name for rule in REGISTRY if {Scope.HAND_OVER, Scope.HAND_BACK} <= set(rule.scopes)}
    made |= {(name, Scope.HAND_BACK) for name in names_of(Scope.HAND_BACK) if name not in as_in_hand_over}
    made |= {("barrier", scope) for scope in (Scope.ROLLBACK, Scope.HAND_BACK, *both)}
    made |= {("journal", scope) for scope in (Scope.ROLLBACK, Scope.HAND_BACK, Scope.DELETE_OF_RUN)}
    assert shown == made


def test_reference_of_the_commands_is_current():
    """docs/reference/commands.md equals what scripts/write_reference.py would write now."""
    code = "import sys; sys.path.insert(0, 'scripts'); from write_reference import PAGE, reference; "
    code += "sys.exit('run scripts/write_reference.py' if PAGE.read_text() != reference() else 0)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_no_kind_of_page_has_more_words_than_its_budget():
    """What users read, the reference and the evidence stay within the budget of `scripts/count_words.py`."""
    script = runpy.run_path(str(ROOT / "scripts" / "count_words.py"))
    words = {kind: sum(pages.values()) for kind, pages in script["words"]().items()}
    assert [f"{kind}: {words[kind]}" for kind, most in script["BUDGET"].items() if most and words[kind] > most] == []


def test_each_kind_of_page_has_a_budget_in_contributing():
    """CONTRIBUTING.md names the budget that ``scripts/count_words.py`` prints for each kind of page."""
    budget = runpy.run_path(str(ROOT / "scripts" / "count_words.py"))["BUDGET"]
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert [
        words for words in budget.values() if words and f" {words:,};" not in text and f" {words:,}." not in text
    ] == []


def test_the_site_builds_without_a_warning(tmp_path):
    """Zensical builds the site in strict mode without an error, and each page is in the navigation."""
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    navigation = (ROOT / "zensical.toml").read_text()
    assert [named(page) for page in DOCS if f'"{page.relative_to(ROOT / "docs")}"' not in navigation] == []
    build = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "index.html").exists()
