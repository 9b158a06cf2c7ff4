"""README.md and docs/: each command line is run by a test, and prints what its page shows."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import pytest

from tests.support.pages import PAGES, ROOT, blocks, commands, text_of
from tests.support.reader import Reader
from tests.support.stories import across, sharing, shop, split
from tests.support.versions import NEEDS_KIP_848

# The parts of the docs whose command lines are typed here: a page, or a section of it.
STORIES: dict[Callable[[Reader], None], tuple[str, ...]] = {
    split.of_the_readme: ("README.md",),
    split.step_by_step: ("docs/split-a-group.md",),
    split.in_production: ("docs/runbook.md",),
    split.in_json: ("docs/reference/json.md",),
    split.set_up: ("docs/connecting.md", "docs/install.md", "docs/sandbox.md", "docs/reference/files.md"),
    split.of_a_fleet: ("docs/fleets.md",),
    shop.of_shop: ("docs/replay.md", "docs/reconcile.md", "docs/audit.md", "docs/history.md"),
    across.compared: ("docs/two-clusters.md#Compare",),
    across.failed_over: ("docs/two-clusters.md#Fail over, and return",),
    across.moved: ("docs/audit.md#After a move to another cluster", "docs/two-clusters.md"),
    sharing.at_one_look: ("docs/advise.md",),
    sharing.over_time: ("docs/advise.md#Measure what sharing costs",),
}
# Those whose command lines another test runs.
PARTS_ELSEWHERE = {
    "docs/applications.md": "tests/e2e/test_across_tools.py",
    "docs/getting-started.md": "tests/e2e/test_getting_started.py",
    "docs/python.md": "tests/e2e/test_python_docs.py",
    "docs/pull-requests.md": "tests/e2e/test_pull_request.py",
    "docs/permissions.md": "tests/broker/test_acls.py",
    "docs/history.md#The offsets at a moment": "tests/e2e/test_snapshot_at.py",
    "docs/advise.md#After a split": "tests/e2e/test_demo.py",
    "docs/sandbox.md#The demo": "tests/e2e/test_demo.py",
}
PARTS = [*(part for parts in STORIES.values() for part in parts), *PARTS_ELSEWHERE]
# Command lines that are not typed here, and where or why not.
ELSEWHERE = {
    "scripts/quickstart": "it downloads everything anew, and runs the demo: tests/e2e/test_demo.py",
    "scripts/test": "it runs this test",
    "pip install .": "tests/e2e/test_packages.py",
    "pip install '.[spark]'": "it downloads PySpark: tests/e2e/test_packages.py installs the package without it",
    "pip wheel --wheel-dir wheels .": "it downloads all dependencies",
    "pip install --no-index --find-links wheels migrate-groups": "it needs these",
    "docker build -t migrate-groups .": "it needs a container engine: tests/unit/test_dockerfile.py",
    "docker build -t migrate-groups:spark --target spark .": "tests/unit/test_dockerfile.py",
    'docker run --rm -it --user "$(id -u):$(id -g)" -v "$PWD:/data" '
    "-e MIGRATE_GROUPS_BOOTSTRAP_SERVER=kafka:9092 migrate-groups migrate split.toml --dry-run": "it needs the image",
    "migrate-groups migrate split.toml --yes --approved plan.json --stop-command './stop.sh big' "
    "--start-command './start.sh billing search' --restart-command './start.sh big'": "tests/unit/test_stop_command.py",
    "migrate-groups migrate split.toml --approved plan.json --yes "
    "--stop-command 'ansible-playbook applications.yml -e applications=big -e state=stopped' "
    "--start-command 'ansible-playbook applications.yml -e applications=billing:search -e state=started' "
    "--restart-command 'ansible-playbook applications.yml -e applications=big -e state=started'": (
        "it needs Ansible: tests/unit/test_recipes.py"
    ),
    "kubectl create configmap migrate-groups-plan --from-file=split.toml --from-file=plan.json "
    "--from-file=scale.sh": "it needs Kubernetes: tests/unit/test_recipes.py",
    "kubectl create secret generic migrate-groups --from-file=MIGRATE_GROUPS_PROPERTIES=client.properties": (
        "it needs Kubernetes: tests/unit/test_recipes.py"
    ),
    "kubectl apply --filename=job.yaml": "it needs Kubernetes: tests/unit/test_recipes.py",
    "kubectl logs --follow job/migrate-groups": "it needs Kubernetes",
    "pip wheel --no-deps --wheel-dir dist .": "tests/spark/test_cluster.py",
    "spark-submit --py-files dist/migrate_groups-*.whl scripts/spark_reconcile.py split.csv after.parquet "
    "--out reconciled": "tests/spark/test_cluster.py",
    "migrate-groups COMMAND --help": "COMMAND stands for any command: tests/unit/test_help.py",
    "migrate-groups doctor": "tests/broker/test_doctor.py",
    "migrate-groups doctor --write": "tests/broker/test_doctor.py",
    "migrate-groups sandbox": "tests/e2e/test_getting_started.py",
    "migrate-groups sandbox --mirror": "tests/broker/test_sandbox.py",
    "migrate-groups demo --story clusters": "tests/e2e/test_demo.py",
}


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="setsid gives bash its terminal")
@NEEDS_KIP_848
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_reader_sees_what_the_page_shows(story, kafka_jars, java, tmp_path):
    """If the command lines of a docs page are typed, each ends with its exit code.

    They print each line of output that the page shows, except that numbers may differ. ``--settle`` and ``--guard`` are
    1 s instead of 10 s and 30 s.
    """
    with Reader(tmp_path, kafka_jars, java, PARTS, ELSEWHERE) as reader:
        story(reader)
    assert tuple(reader.read) == STORIES[story]
    assert reader.missing == []


def test_every_command_line_is_run():
    """Each command line in README.md and docs/ is typed by a test, or listed in `ELSEWHERE` with the reason why not.

    No page whose command lines are not typed shows output.
    """
    rest = {page: text_of(page, PARTS) for page in PAGES if page not in PARTS}
    assert {page: lines for page, text in rest.items() if (lines := {*commands(text)} - {*ELSEWHERE})} == {}
    assert [page for page, text in rest.items() if blocks(text, "")] == []


def test_what_is_listed_exists():
    """Each command line that is listed in `ELSEWHERE` is on a page, and each test file that the lists name exists."""
    lines = {line for path in PAGES.values() for line in commands(path.read_text())}
    assert {*ELSEWHERE} - lines == set()
    assert [part for part in PARTS if not text_of(part, PARTS)] == []
    for where in (*ELSEWHERE.values(), *PARTS_ELSEWHERE.values()):
        for path in re.findall(r"tests/\S+\.py", where):
            assert (ROOT / path).exists(), where
