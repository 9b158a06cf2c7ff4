"""The GitHub action, and the shell lines of docs/pull-requests.md, run on a real broker as GitHub runs them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from migrate_groups.cli.connect import Connection
from migrate_groups.migration.ports import GroupReader, GroupWriter
from migrate_groups.model.partitions import TopicPartition
from tests.support.actions_runner import ACTION, BOT, Ran, Runner, evaluate, filled
from tests.support.comments import Page
from tests.support.pages import PAGES, blocks
from tests.support.specs import split_spec

_PAGE = PAGES["docs/pull-requests.md"].read_text()
# Names of which a shell, a log or a comment would make something, were they inserted anywhere.
_HOSTILE = "$(touch pwned) `touch pwned` '\"; touch pwned; # --> @all\n::error::x\n${{ github.token }}"


CUT_OVER, AS_REVIEWED, OTHER_PIPELINES = blocks(_PAGE, "sh")


def workflow(runner: Runner, bootstrap_servers: str, properties: str = "") -> Ran:
    """Run the workflow of docs/pull-requests.md, and keep its artifact. properties: the secret KAFKA_PROPERTIES."""
    [text] = blocks(_PAGE, "yaml")
    checkout, plan, upload = yaml.safe_load(text)["jobs"]["plan"]["steps"]
    assert checkout["uses"].startswith("actions/checkout@")
    assert plan["uses"] == "your-organisation/migrate_groups@main"
    assert upload["uses"].startswith("actions/upload-artifact@")
    given = {"vars": {"KAFKA_BOOTSTRAP_SERVER": bootstrap_servers}, "secrets": {"KAFKA_PROPERTIES": properties}}
    contexts = runner.contexts(**given)
    ran = runner.action({name: filled(value, contexts) for name, value in plan["with"].items()})
    contexts = runner.contexts(steps={plan["id"]: {"outputs": ran.outputs}})
    if evaluate(upload["if"], contexts):
        runner.upload(filled(upload["with"]["path"], contexts))
    return ran


@pytest.fixture
def runner(tmp_path) -> Runner:
    """A stand-in for GitHub's runner, with the checkout of a pull request."""
    return Runner(tmp_path)


class Review:
    """A group with committed offsets for two topics, and a checkout with a split.toml for two target groups."""

    def __init__(self, runner: Runner, world, more: str = "") -> None:
        self.world, self.old = world, world.name("big") + more
        self.billing, self.search = f"{self.old}-billing", f"{self.old}-search"
        self.pay, self.find = (world.create_topic(2, topic=world.name(what)) for what in ("pay", "find"))
        for topic in (self.pay, self.find):
            for partition in (0, 1):
                world.produce(topic, partition, 10)
                world.commit(self.old, TopicPartition(topic, partition), 4)
        self.spec = split_spec(self.old, {self.billing: self.pay, self.search: self.find})
        (runner.workspace / "split.toml").write_text(self.spec)

    def committed(self) -> dict[TopicPartition, int]:
        """Return the committed offsets of the target groups."""
        return self.world.committed(self.billing) | self.world.committed(self.search)


@pytest.fixture
def review(runner, world) -> Review:
    return Review(runner, world)


def shell_of_operator(runner: Runner, lines: str, bootstrap_servers: str) -> tuple[int, str]:
    """Run shell lines as an operator does, with the cluster in the environment. Return exit code and output."""
    return runner.shell(lines, more={"MIGRATE_GROUPS_BOOTSTRAP_SERVER": bootstrap_servers})


def test_first_push_is_commented(runner, review, world, bootstrap_servers):
    """The plan of a live group has the verdict pending, and the job passes. No offset is written.

    The pull request's comment, the job's summary and the outputs contain the plan.
    """
    world.join(review.old, review.pay, review.find)
    ran = workflow(runner, bootstrap_servers)
    assert ran.code == 0, ran.log
    [comment] = runner.bodies
    first, heading, _ = comment.split("\n", 2)
    assert first == "<!-- migrate-groups: the plan of split.toml -->"
    assert heading == "### Consumer groups: 4 partitions (4 create)"
    assert f"| `{review.old}` | `{review.billing}` | 1 | 2 |" in comment
    assert f"| `{review.find}` | 1 | - | 4 | create |" in comment
    assert comment.endswith(
        "\n\n`split.toml` at 1a2b3c4, [run 99](https://github.example/acme/groups/actions/runs/99)\n"
    )
    assert ran.summary == comment
    plan = json.loads(Path(ran.outputs["plan"]).read_text())
    outputs = {"exit-code": "0", "changed": "true", "refused": "false", "plan": ran.outputs["plan"]}
    assert ran.outputs == outputs | {"intent": plan["intent"]}
    assert (plan["verdict"], review.committed()) == ("pending", {})


def test_second_push_updates_the_comment(runner, review, world, bootstrap_servers):
    """On the second push, the action changes its comment from the first push.

    It changes no comment of another author, not even one with the same text.
    """
    theirs = {"id": 8, "user": {"login": "mallory"}, "body": "<!-- migrate-groups: the plan of split.toml -->\n"}
    other_spec = {"id": 9, "user": {"login": BOT}, "body": "<!-- migrate-groups: the plan of a/split.toml -->\n"}
    runner.comments = [theirs, other_spec, {"id": 10, "user": None, "body": "\u2028"}]
    assert workflow(runner, bootstrap_servers).code == 0
    before = runner.comments
    world.commit(review.old, TopicPartition(review.pay, 0), 9)
    runner.push("4d5e6f7")
    assert workflow(runner, bootstrap_servers).code == 0
    *others, ours = runner.comments
    assert (others, ours["id"]) == (before[:-1], before[-1]["id"])
    assert f"| `{review.pay}` | 0 | - | 9 | create |" in ours["body"]
    assert "`split.toml` at 4d5e6f7" in ours["body"]


def test_refused_plan_is_commented_and_then_fails_the_job(runner, review, world, bootstrap_servers):
    """If a check refuses the plan, the job fails with exit code 3. The comment names the check and the reason."""
    world.commit(review.search, TopicPartition(review.find, 0), 7)
    ran = workflow(runner, bootstrap_servers)
    assert ran.code == 3, ran.log
    assert (ran.outputs["exit-code"], ran.outputs["refused"]) == ("3", "true")
    [comment] = runner.bodies
    assert "**refuse** existing offsets: 1 partition with another committed offset" in comment
    assert "refused: nothing can be written" in comment
    assert json.loads(Path(ran.outputs["plan"]).read_text())["intent"] == ran.outputs["intent"]


def test_plans_of_a_fleet(runner, review, world, bootstrap_servers):
    """Of a fleet the action comments one table, and its output names the folder of the plans.

    The folder is what ``--approved`` takes. If a check refuses one of the groups, the job fails.
    """
    other = world.name("big")
    for partition in (0, 1):
        world.commit(other, TopicPartition(review.pay, partition), 2)
    spec = f'groups = ["{review.old}", "{other}"]\nrename = ["*=new.*"]\n[options]\nsettle = "0s"\nguard = "1ms"\n'
    (runner.workspace / "split.toml").write_text(spec)
    ran = workflow(runner, bootstrap_servers)
    assert (ran.code, ran.outputs["changed"], ran.outputs["refused"], ran.outputs["intent"]) == (0, "true", "false", "")
    [comment] = runner.bodies
    assert f"`new.{other}`" in comment
    download = f"{CUT_OVER.partition('#')[0]} -D plans\n"
    code, said = shell_of_operator(
        runner, f"{download}migrate-groups migrate split.toml --approved plans --yes", bootstrap_servers
    )
    assert code == 0, said
    assert world.committed(f"new.{review.old}") == world.committed(review.old)
    world.commit(f"new.{other}", TopicPartition(review.pay, 0), 1)
    ran = workflow(runner, bootstrap_servers)
    assert (ran.code, ran.outputs["refused"]) == (3, "true"), ran.log


def test_plan_without_changes(runner, review, world, bootstrap_servers):
    """If the target groups already have the offsets, the action's output `changed` is false, and the job passes."""
    for group, topic in ((review.billing, review.pay), (review.search, review.find)):
        for partition in (0, 1):
            world.commit(group, TopicPartition(topic, partition), 4)
    ran = workflow(runner, bootstrap_servers)
    assert (ran.code, ran.outputs["changed"], ran.outputs["refused"]) == (0, "false", "false"), ran.log
    assert "### Consumer groups: 4 partitions (4 unchanged)" in runner.bodies[0]


def test_without_a_cluster_the_comment_says_that_there_is_no_plan(runner, review, bootstrap_servers):
    """If the cluster can't be reached, the job fails with exit code 5, and the comment says that there is no plan.

    The comment no longer shows an earlier plan.
    """
    assert workflow(runner, bootstrap_servers).code == 0
    ran = workflow(runner, "127.0.0.1:1")
    assert (ran.code, "127.0.0.1:1" in ran.log) == (5, True)
    assert ran.outputs == {"exit-code": "5", "changed": "", "refused": "", "plan": "", "intent": ""}
    [comment] = runner.bodies
    assert "no plan\n\nThe dry run ended with exit code 5" in comment
    assert review.pay not in comment


def test_without_comment(runner, review, bootstrap_servers):
    """With `comment: false` the action does not call gh, GitHub's command. The job's summary contains the plan."""
    ran = runner.action({"spec": "split.toml", "bootstrap-server": bootstrap_servers, "comment": "false"})
    assert (ran.code, runner.gh_calls()) == (0, []), ran.log
    assert "### Consumer groups: 4 partitions (4 create)" in ran.summary


def test_gh_that_fails_is_an_error(runner, review, bootstrap_servers):
    """If gh can't write the comment, the job fails with one line that names the missing permission."""
    (runner.folder / "comments").unlink()  # the fake gh fails then
    ran = workflow(runner, bootstrap_servers)
    assert ran.code == 1
    assert "error: gh api ended with exit code 1: the job needs pull-requests: write" in ran.log
    assert "### Consumer groups: 4 partitions (4 create)" in ran.summary


def test_hostile_names_are_text(runner, world, bootstrap_servers):
    """The action treats group names, paths and properties as text, even if they contain code.

    They are never executed, start no workflow command, and add no markup to the comment.
    """
    review = Review(runner, world, _HOSTILE)
    folder, spec = f"-{_HOSTILE}", f"--{_HOSTILE}.toml"
    (runner.workspace / folder).mkdir()
    (runner.workspace / folder / spec).write_text(review.spec)
    inputs = {"spec": spec, "working-directory": folder, "bootstrap-server": bootstrap_servers}
    ran = runner.action(inputs | {"properties": _HOSTILE.replace("\n", " ") + "=1\n::error::x=2"})
    assert ran.code == 0, ran.log
    [comment] = runner.bodies
    assert re.fullmatch(r"<!-- [\w%/.:~ -]+ -->", comment.partition("\n")[0])
    # The next command is one line of inline code: its quotes differ from those of the names.
    comment, number = re.subn(r"^Next: (`+).*\1$", "", comment, flags=re.MULTILINE)
    assert number == 1
    assert comment.count("-->") == 1 + comment.count("`touch pwned` '\"; touch pwned; # -->")
    assert Page(comment.partition("\n")[2]).tags <= {"h3", "p", "strong", "code", "br", "ul", "li", "a"} | {
        *("details", "summary", "table", "thead", "tbody", "tr", "th", "td")
    }
    wrong = [
        runner.action(inputs | {"spec": f"missing-{_HOSTILE}"}),
        runner.action(inputs | {"bootstrap-server": _HOSTILE}),
        runner.action(inputs | {"comment": _HOSTILE}),
    ]
    assert [ran.code for ran in wrong] == [2, 2, 0]
    log = "".join(each.log for each in (ran, *wrong))
    assert [line for line in log.splitlines() if line.lstrip().startswith(("::", "##["))] == []
    assert list(runner.folder.rglob("pwned")) == []


def test_no_output_has_a_secret_of_the_properties(runner, review, bootstrap_servers):
    """If the action's input `properties` has a login, its password is in no file, no log and no environment of gh."""
    login = 'PlainLoginModule required username="ops" password="hunter-secret";'
    properties = f"""bootstrap.servers={bootstrap_servers}
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.{login}
"""
    ran = workflow(runner, "", properties)
    assert ran.code == 0, ran.log
    assert "not used here, with security.protocol PLAINTEXT: sasl.jaas.config, sasl.mechanism" in ran.log
    refused = workflow(runner, "", f"{properties}security.protocol=SASL_PLAINTEXT\n")
    assert refused.code == 5, refused.log
    files = [path for path in runner.folder.rglob("*") if path.is_file()]
    assert runner.folder / "calls" in files
    for text in (ran.log, ran.summary, refused.log, refused.summary, *(path.read_text() for path in files)):
        assert "hunter" not in text


def test_a_live_group_is_cut_over_as_approved(runner, review, world, bootstrap_servers):
    """After a live group has stopped, the cut-over writes the offsets at which the group stopped.

    The groups and topics are those of the approved plan.
    """
    member = world.join(review.old, review.pay, review.find)
    assert workflow(runner, bootstrap_servers).code == 0
    world.leave(member)
    world.commit(review.old, TopicPartition(review.pay, 1), 9)
    code, said = shell_of_operator(runner, f"{CUT_OVER.rstrip()} --yes", bootstrap_servers)
    assert code == 0, said
    assert runner.gh_calls()[-1][0] == ["run", "download", "99", "-n", "plan"]
    assert review.committed() == world.committed(review.old)
    assert review.committed()[TopicPartition(review.pay, 1)] == 9


def test_a_stopped_group_is_applied_as_reviewed(runner, review, world, bootstrap_servers):
    """``apply`` of the reviewed plan writes exactly the offsets that the pull request showed.

    The receipt is next to the plan.
    """
    ran = workflow(runner, bootstrap_servers)
    assert ran.code == 0, ran.log
    plan = json.loads(Path(ran.outputs["plan"]).read_text())
    code, said = shell_of_operator(runner, AS_REVIEWED, bootstrap_servers)
    assert code == 0, said
    assert {
        TopicPartition(change["topic"], change["partition"]): change["after"]["offset"] for change in plan["changes"]
    } == review.committed()
    receipt = json.loads((runner.workspace / "plan.json.receipt.json").read_text())
    assert (receipt["executions"][0]["intent"], receipt["executions"][0]["content"]) == (
        plan["intent"],
        plan["content"],
    )
    assert {entry["outcome"] for entry in receipt["entries"]} == {"confirmed"}


def test_stale_plan_is_refused(runner, review, world, bootstrap_servers):
    """``apply`` refuses a plan with exit code 3 if the committed offsets in the source or target group have changed.

    It also refuses the plan if records at a planned offset were deleted. Nothing is written.
    """
    assert workflow(runner, bootstrap_servers).code == 0
    world.commit(review.old, TopicPartition(review.pay, 0), 8)
    world.commit(review.billing, TopicPartition(review.pay, 1), 2)
    world.delete_records(review.find, 0, 6)
    code, said = shell_of_operator(runner, AS_REVIEWED, bootstrap_servers)
    assert code == 3
    assert "the plan is stale: 3 partitions changed since it was made" in said
    assert f"{review.pay}-0 (source group {review.old}: 4 → 8)" in said
    assert f"{review.pay}-1 (target group: no offset → 2)" in said
    assert f"{review.find}-0 (4 is below the log start offset 6: 2 records deleted)" in said
    assert review.committed() == {TopicPartition(review.pay, 1): 2}


def test_apply_reads_a_plan_from_stdin(runner, review, bootstrap_servers):
    """``apply -`` reads a plan from stdin. Without ``--receipt`` it ends with exit code 2."""
    ran = workflow(runner, bootstrap_servers)
    shutil.copy(ran.outputs["plan"], runner.workspace)
    code, said = shell_of_operator(runner, "migrate-groups apply - --yes < plan.json", bootstrap_servers)
    assert (code, "--receipt" in said) == (2, True)
    code, said = shell_of_operator(
        runner, "migrate-groups apply - --yes --receipt r.json < plan.json", bootstrap_servers
    )
    assert code == 0, said
    assert len(review.committed()) == 4


def test_reader_of_a_dry_run_has_no_method_that_writes(bootstrap_servers):
    """The object with which a dry run reads has every method of `GroupReader`, and no method that writes."""
    with Connection(bootstrap_servers, timeout="20s").open_reader() as reader:
        there = {name for name in dir(GroupWriter) if not name.startswith("_") and hasattr(reader, name)}
    assert there == {name for name in dir(GroupReader) if not name.startswith("_")}


def test_other_pipelines_learn_from_the_exit_code(runner, review, world, bootstrap_servers):
    """With ``--detailed-exitcode`` a dry run ends with exit code 10 if ``migrate`` would write.

    The exit code is 0 if there is nothing to write, and 3 if the plan is refused.
    """
    folder = runner.workspace
    codes = []
    for offset in (None, 4, 5):
        if offset:
            for group, topic in ((review.billing, review.pay), (review.search, review.find)):
                for partition in (0, 1):
                    world.commit(group, TopicPartition(topic, partition), offset)
        codes.append(shell_of_operator(runner, f"{OTHER_PIPELINES}exit $code\n", bootstrap_servers)[0])
        assert (folder / "plan.md").read_text().startswith("### Consumer groups: 4 partitions")
        (folder / "plan.json").unlink()
    assert codes == [10, 0, 3]


def test_inputs_reach_the_shell_as_environment_variables():
    """No shell line of action.yml contains a ``${{ }}`` expression.

    Each step's ``env`` sets every variable that the step's lines use.
    """
    set_by_the_runner = {"GITHUB_ACTION_PATH", "GITHUB_OUTPUT", "RUNNER_TEMP"}
    for step in ACTION["runs"]["steps"]:
        lines = step.get("run", "")
        assert "${{" not in lines
        own = set(re.findall(r"^(\w+)=", lines, re.M))
        assert set(re.findall(r"\$\{?(\w+)", lines)) - set_by_the_runner - own <= step.get("env", {}).keys()
        unquoted = re.sub(r'"[^"]*"', "", lines)
        assert re.findall(r"\$[^(?]", unquoted) == []


@pytest.mark.long
def test_the_action_installs_the_package_from_its_own_checkout(tmp_path, world, bootstrap_servers):
    """The action installs the package into its own environment, and imports no file of the pull request."""
    runner = Runner(tmp_path, real_python=True)
    review = Review(runner, world)
    for module in ("venv", "ensurepip", "pip", "json", "subprocess", "migrate_groups", "msgspec"):
        (runner.workspace / f"{module}.py").write_text("open('pwned', 'w').close()\n")
    ran = workflow(runner, bootstrap_servers)
    assert ran.code == 0, ran.log
    assert f"| `{review.find}` | 1 | - | 4 | create |" in runner.bodies[0]
    assert list(runner.folder.rglob("pwned")) == []
    assert shutil.which("migrate-groups", path=tmp_path / "temp of the runner" / "migrate-groups" / "bin")
