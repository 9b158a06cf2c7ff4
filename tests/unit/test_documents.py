"""With ``--format json``, a command prints one JSON document on stdout, as in docs/schemas, whatever its exit code."""

from __future__ import annotations

import json
import re
import runpy
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import typer.main

from migrate_groups.cli.commands import demo, sandbox
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.registry import COMMANDS, command_line
from migrate_groups.demo.ledger import Count
from migrate_groups.demo.scene import Ending
from migrate_groups.demo.story import Story
from migrate_groups.errors import InvalidInput
from migrate_groups.files import safe_write
from migrate_groups.files.runs import plan_json
from migrate_groups.kafka.client import Unreachable
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.sandbox import broker, restart
from migrate_groups.show import short_results
from tests.support.connected import APPLY, MIGRATE, PARTITION, Connected
from tests.support.documents import DOCS, SCHEMAS, name_of, parsed

ROOT = Path(__file__).parents[2]
PARSED = typer.main.get_group(command_line()).commands
JSON = ("--format", "json")
RUN = "split.toml.run"
MEMBER = Member(member_id="m", client_id="app", host="/h", subscription=frozenset({"t"}))
HOSTILE = 'g "\n\x1b[31m\u202e\x9b'
WAYS_BACK = ("rollback", "hand-back", "delete-offsets")


def shown(cli: Connected, *arguments: object, code: int = 0, stdin: str = "") -> dict[str, Any]:
    """Run a command with ``--format json``, and return the document that it prints."""
    return parsed(cli(*arguments, *JSON, code=code, stdin=stdin).stdout)


def error(cli: Connected, *arguments: object, code: int, stdin: str = "") -> tuple[str, str]:
    """Run a command that fails.

    Return the kind and the message of its error document; check that stderr has the same message.
    """
    done = cli(*arguments, *JSON, code=code, stdin=stdin)
    found = parsed(done.stdout)["error"]
    assert found["exit_code"] == code
    assert f"error: {found['message']}\n" in done.stderr
    return found["kind"], found["message"]


def test_schemas_are_current():
    """docs/schemas contains exactly the files that scripts/write_schemas.py would write now."""
    made = runpy.run_path(str(ROOT / "scripts" / "write_schemas.py"))["files"]()
    assert {path.name: path.read_text() for path in SCHEMAS.iterdir()} == made


def test_every_command_takes_format_json():
    """Every command has the option ``--format`` with ``json`` among its values."""
    for name in COMMANDS:
        (option,) = [each for each in PARSED[name].params if "--format" in each.opts]
        assert "json" in getattr(option.type, "choices", ())


def test_the_page_of_documents_has_an_example_of_each():
    """docs/reference/json.md links each schema, and has one example of each document, with every field."""
    page = (DOCS / "reference" / "json.md").read_text()
    kinds = runpy.run_path(str(ROOT / "scripts" / "write_schemas.py"))["documents"]()
    assert set(re.findall(r"\(\.\./schemas/([a-z-]+)\.json\)", page)) == kinds.keys()
    examples = re.findall(r"^```json\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert sorted(name_of(parsed(each)) for each in examples) == sorted(kinds)
    for each in examples:
        document = parsed(each)
        # A field that is not in the class is lost on this way, and one that is missing gets its default.
        decoded = msgspec.json.decode(each, type=kinds[name_of(document)], dec_hook=lambda kind, text: kind(text))
        assert json.loads(msgspec.json.encode(decoded, enc_hook=str)) == document


def test_snapshot_and_what_is_made_of_it(cli):
    """The JSON documents of snapshot, filter, split and export show what was written and what was left out."""
    cli.cluster.create_topic("u", 1)
    cli.cluster.join("old", replace(MEMBER, subscription=frozenset({"t", "u"})))
    rows = {"group": "old", "partitions": 2, "committed": 1, "topics": ["t", "u"]}
    assert shown(cli, "snapshot", "old", "-o", "s.csv") == {
        "schema": "migrate-groups/snapshot", "schema_version": 1, "output": "s.csv", "groups": [rows],
        "at": None, "not_known": [],
    }  # fmt: skip
    kept = shown(cli, "filter", "s.csv", "--topic", "t", "-o", "f.csv")
    assert (kept["kept"], kept["left_out"], kept["groups"][0]["topics"]) == (1, 1, ["t"])
    split = shown(cli, "split", "s.csv", "--to", "new=t", "--stay", "u*", "-o", "new.csv")
    assert (split["source"], split["targets"], split["stay"], split["left_out"]) == ("old", {"new": ["t"]}, ["u"], [])
    assert split["patterns"][1] == {"group": None, "pattern": "u*", "topics": ["u"]}
    exported = shown(cli, "export", "s.csv", "-o", "e.csv")
    assert (exported["exported"], exported["left_out"]) == (1, 1)


def test_rewind(cli):
    """The JSON document of ``rewind`` shows each partition's offset and note, the time, and the partitions left out."""
    cli.cluster.add_partitions("t", 2)
    document = shown(cli, "rewind", "--group", "old", "--partition", "0", "--shift-by=-9", "-o", "r.csv")
    (partition,) = document["partitions"]
    assert (partition["committed_offset"], partition["offset"], partition["to_replay"]) == (5, 0, 10)
    assert (partition["note"], document["time"], document["to_replay"]) == ("clamped", None, 10)
    assert document["left_out"] == [{"topic": "t", "partition": 1}]
    timed = shown(cli, "rewind", "--topic", "t", "--to-datetime", "2026-01-01T00:00:00Z", "-o", "t.csv")
    assert timed["time"] == "2026-01-01T00:00:00Z"
    assert [each["note"] for each in timed["partitions"]] == ["past end", "empty"]


def test_verify_and_watch(cli):
    """The JSON document of ``verify`` names the groups that have stopped.

    That of ``watch`` names the topics that the group has consumed to the end.
    """
    verified = shown(cli, "verify", "old", "--topic", "t", "--settle", "0s")
    assert (verified["groups"], verified["topics"], verified["settle"]) == (["old"], ["t"], 0.0)
    cli.cluster.commit("old", PARTITION, 10)
    watched = shown(cli, "watch", "old")
    assert (watched["group"], watched["partitions"], watched["records"]) == ("old", 1, 0)
    assert watched["topics"] == [{"topic": "t", "partitions": 1, "records": 0}]


def test_delete_group(cli):
    """``delete-group`` prints as JSON, by group, which offsets it deleted or, in a dry run, would delete.

    Tables go to stderr.
    """
    cli.cluster.commit("other", PARTITION, 7)
    dry = cli("delete-group", "old", "other", "--dry-run", *JSON)
    assert "committed" in dry.stderr
    groups = [
        {
            "group": name,
            "deleted": False,
            "error": None,
            "offsets": [{"topic": "t", "partition": 0, "offset": offset, "metadata": ""}],
        }
        for name, offset in (("old", 5), ("other", 7))
    ]
    assert parsed(dry.stdout)["groups"] == groups
    done = cli("delete-group", "old", "other", "--yes", *JSON)
    assert parsed(done.stdout)["groups"] == [{**group, "deleted": True} for group in groups]
    assert done.stderr.endswith("deleted: old\ndeleted: other\n")


def test_apply_group(cli):
    """``apply --from-group`` prints its plan or receipt as JSON.

    If the source group has members, it prints an error document.
    """
    command = ("apply", "--from-group", "old", "--to-group", "new", "--settle", "0s", "--guard", "1ms")
    assert shown(cli, *command, "--dry-run")["changes"][0]["after"]["offset"] == 5
    done = cli(*command, "--yes", *JSON)
    assert done.stdout == (cli.folder / "old.new.receipt.json").read_text()
    assert parsed(done.stdout)["entries"][0]["outcome"] == "confirmed"
    cli.cluster.join("old", MEMBER)
    kind, message = error(cli, "apply", "--from-group", "old", "--to-group", "b", "--copy", "--yes", code=3)
    assert (kind, message.partition(":")[0]) == ("Refused", "stopped")


def test_delete_offsets_of_a_group(cli):
    """``delete-offsets --group`` prints its plan or receipt as JSON, even if no offset is left to delete."""
    command = ("delete-offsets", "--group", "old", "--topic", "t", "--settle", "0s")
    (change,) = shown(cli, *command, "--dry-run")["changes"]
    assert (change["before"]["offset"], change["after"]) == (5, None)
    done = cli(*command, "--yes", *JSON)
    receipt = (cli.folder / "old.delete-offsets.receipt.json").read_text()
    assert (done.stdout, parsed(receipt)["entries"][0]["outcome"]) == (receipt, "confirmed")
    for last in ("--dry-run", "--yes"):
        again = cli(*command, last, *JSON)
        assert (again.stdout, "no offsets left to delete" in again.stderr) == (receipt, True)
    assert error(cli, *command[:-4], "--topic", "none", "--yes", code=2)[0] == "InvalidInput"


@pytest.mark.parametrize(("command", "receipt"), [(APPLY, "receipt.json"), (MIGRATE, f"{RUN}/receipt.json")])
def test_a_hand_over_prints_its_plan_or_its_receipt(cli, command, receipt):
    """With ``--format json``, a dry run of ``apply`` or ``migrate`` prints the plan, and a write prints the receipt.

    The plan's table goes to stderr, before the other messages.
    """
    dry = cli(*command, "--dry-run", *JSON)
    assert parsed(dry.stdout)["changes"][0]["after"]["offset"] == 5
    assert "log end" not in dry.stdout
    done = cli(*command, *JSON)
    assert parsed(done.stdout)["entries"][0]["outcome"] == "confirmed"
    assert done.stdout == (cli.folder / receipt).read_text()
    assert done.stderr.index("create") < done.stderr.index("START THE NEW GROUPS NOW")
    assert "1 partition: 1 confirmed" in done.stderr


@pytest.mark.parametrize("command", [APPLY, MIGRATE])
def test_a_hand_over_that_is_over_prints_its_receipt(cli, command):
    """If the new group has committed after the hand-over, a dry run and a re-run print the receipt unchanged."""
    cli(*command)
    before = shown(cli, *command)
    cli.cluster.commit("new", PARTITION, 7)
    assert shown(cli, *command) == shown(cli, *command, "--dry-run") == before


@pytest.mark.parametrize("verb", WAYS_BACK)
def test_a_way_back_prints_its_plan_or_its_receipt(cli, verb):
    """rollback, hand-back and delete-offsets print their plan or receipt as JSON, even if nothing is left to do."""
    cli(*MIGRATE)
    assert shown(cli, verb, RUN, "--dry-run")["schema"] == "migrate-groups/plan"
    done = cli(verb, RUN, "--yes", *JSON)
    assert [each["verb"] for each in parsed(done.stdout)["executions"]] == ["hand-over", verb]
    assert done.stdout == (cli.folder / RUN / "receipt.json").read_text()
    assert shown(cli, verb, RUN, "--yes") == shown(cli, verb, RUN, "--dry-run") == parsed(done.stdout)


@pytest.mark.parametrize("before", ["", "\n  "])
def test_a_printed_plan_is_applied_from_stdin(cli, before):
    """``apply -`` accepts a plan on stdin, even with white space before it, and refuses a receipt."""
    plan = cli(*MIGRATE, "--dry-run", *JSON).stdout
    done = shown(cli, "apply", "-", "--yes", "--receipt", "receipt.json", stdin=before + plan)
    assert done["executions"][0]["content"] == json.loads(plan)["content"]
    assert cli.offset("new") == 5
    receipt = (cli.folder / "receipt.json").read_text()
    kind, message = error(cli, "apply", "-", "--dry-run", code=2, stdin=receipt)
    assert (kind, message) == (
        "InvalidInput",
        "standard input is a receipt, not a plan: pass it to status, rollback, hand-back or delete-offsets",
    )


@pytest.mark.parametrize("verb", WAYS_BACK)
def test_the_plan_of_a_way_back_is_not_applied(cli, verb):
    """``apply -`` refuses the plan of a rollback, hand-back or delete-offsets, and writes nothing."""
    cli(*MIGRATE)
    plan = cli(verb, RUN, "--dry-run", *JSON).stdout
    offsets = cli.offset("old"), cli.offset("new")
    kind, message = error(cli, "apply", "-", "--yes", "--receipt", "r.json", code=3, stdin=plan)
    assert (kind, "the plan is stale" in message) == ("Refused", True)
    assert (cli.offset("old"), cli.offset("new")) == offsets


@pytest.mark.parametrize("command", [APPLY, MIGRATE])
def test_a_refused_hand_over(cli, command):
    """If a check refuses the hand-over, the exit code is 3.

    A dry run prints the plan with this check, a write prints an error document.
    """
    cli.cluster.commit("new", PARTITION, 9)
    checks = shown(cli, *command, "--dry-run", code=3)["checks"]
    assert [each["name"] for each in checks if each["verdict"] == "refuse"] == ["existing offsets"]
    kind, message = error(cli, *command, code=3)
    assert (kind, message.partition(":")[0]) == ("Refused", "existing offsets")


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("snapshot", "none", "-o", "s.csv"), "GroupNotFound"),
        (("rewind", "--group", "none", "--to-earliest", "-o", "r.csv"), "GroupNotFound"),
        (("verify", "none"), "GroupNotFound"),
        (("verify", "old", "--wait", "0s"), "Refused"),
        (("watch", "old", "--wait", "0s"), "Refused"),
        (("delete-group", "old", "--yes"), "Refused"),
        (("rollback", RUN, "--yes"), "Refused"),
        (("hand-back", RUN, "--yes", "--wait", "0s"), "Refused"),
        (("delete-offsets", RUN, "--yes"), "Refused"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else value,
)
def test_a_refusal_is_a_document(cli, arguments, kind):
    """If a command is refused with exit code 3, it prints a document with the kind of the error and its reason."""
    cli(*MIGRATE)
    cli.cluster.commit("new", PARTITION, 4)
    cli.cluster.join("old", MEMBER)
    cli.cluster.join("new", MEMBER)
    assert error(cli, *arguments, code=3)[0] == kind


@pytest.mark.parametrize("command", [APPLY, MIGRATE, *((verb, RUN, "--yes") for verb in WAYS_BACK)])
def test_a_write_that_is_not_whole_prints_its_receipt(cli, monkeypatch, command):
    """If brokers refuse a write, the exit code is 4; the printed receipt shows each partition's outcome and error."""
    if command[0] in WAYS_BACK:
        cli(*MIGRATE)
        if command[0] == "hand-back":
            cli.cluster.commit("new", PARTITION, 7)
    cli.refuse_writes(monkeypatch)
    document = shown(cli, *command, code=4)
    last = document["executions"][-1]["number"]
    entries = [entry for entry in document["entries"] if entry["execution"] == last]
    assert [(entry["outcome"], entry["error"]) for entry in entries] == [("refused", "NOT_LEADER")]


def test_a_group_that_is_still_there(cli, monkeypatch):
    """If ``delete-group`` can't delete a group, the exit code is 4.

    The document says which groups still exist, and why.
    """
    delete = cli.cluster.delete_group

    def time_out(group):
        return WriteAnswer(answer=Answer.UNKNOWN, error="timeout") if group == "old" else delete(group)

    monkeypatch.setattr(cli.cluster, "delete_group", time_out)
    cli.cluster.commit("other", PARTITION, 7)
    done = cli("delete-group", "old", "other", "--yes", *JSON, code=4)
    old, other = parsed(done.stdout)["groups"]
    assert (other["deleted"], other["error"], old["deleted"]) == (True, None, False)
    assert old["error"].startswith("group 'old' still exists (timeout)")
    assert f"error: 1 of 2 groups deleted; {old['error']}\n" in done.stderr


def test_a_receipt_that_could_not_be_kept_is_printed(cli, monkeypatch):
    """If the receipt can't be saved after the write, the exit code is 4, and stdout still has the whole receipt."""
    kept, calls = safe_write.write_whole, []

    def write_once(*arguments, **more):
        calls.append(True)
        if len(calls) > 1:
            raise InvalidInput("disk full")
        kept(*arguments, **more)

    monkeypatch.setattr("migrate_groups.files.runs.receipt_file.write_whole", write_once)
    assert [each["outcome"] for each in shown(cli, *APPLY, code=4)["entries"]] == ["confirmed"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("snapshot", "old"),
        ("filter", "split.csv"),
        ("split", "split.csv", "--to", "a=t"),
        ("export", "split.csv"),
        ("rewind", "--group", "old", "--to-earliest"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_stdout_has_one_document_only(cli, arguments):
    """``-o -`` together with ``--format json`` is refused with exit code 2, because both write to stdout."""
    assert error(cli, *arguments, "-o", "-", code=2) == (
        "UsageError",
        "-o - and --format json both write to stdout: name a file with -o",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("snapshot", "old", *JSON), "missing option '--output' / '-o': see"),
        (("verify", "old", "--format=json", "--no-such"), "unknown option --no-such: see"),
        (("apply", *JSON, "--on-existing", "perhaps", "split.csv"), "'perhaps'"),
        (("split", "--xyzzy", *JSON), "unknown option --xyzzy: see"),
        (("watch", "g", "more", *JSON), "unexpected argument more: quote a glob"),
        (("watch", *JSON), "missing argument 'GROUP': see"),
    ],
)
def test_a_command_line_that_is_wrong_is_a_document_too(cli, arguments, message):
    """If the option parser fails, stdout has a document of kind UsageError with exit code 2; stderr has the message."""
    status, out, err = cli.outcome(*arguments)
    found = parsed(out)["error"]
    assert (status, found["kind"], found["exit_code"]) == (2, "UsageError", 2)
    assert message in found["message"]
    assert message in err


def test_without_format_json_a_failure_prints_nothing_on_stdout(cli):
    """Without ``--format json``, a command that fails prints nothing on stdout.

    This holds even if an earlier command of the same process had the option.
    """
    error(cli, "verify", "none", code=3)
    assert cli("verify", "none", code=3).stdout == ""
    assert cli("verify", "none", "--format", "xml", code=2).stdout == ""
    assert cli("--no-such", code=2).stdout == ""


def test_an_unreachable_cluster_and_missing_terminal(cli, monkeypatch):
    """If the cluster is unreachable, the exit code is 5, and the document names a public error class.

    If a confirmation prompt finds no terminal, the exit code is 2.
    """
    assert error(cli, *MIGRATE[:-1], code=2)[1].startswith("stdin is not a terminal")

    def unavailable(_):
        raise Unreachable("no answer")

    monkeypatch.setattr(Connection, "open_reader", unavailable)
    assert error(cli, "verify", "old", code=5) == ("ClusterUnavailable", "no answer")


@pytest.fixture
def kafka(monkeypatch) -> SimpleNamespace:
    """Replace the Kafka that sandbox and demo start by a fake one with two brokers, which ends at once."""
    nodes = [
        SimpleNamespace(
            node_id=each, bootstrap_servers=f"h:{each}", pid=each * 10, kept=SimpleNamespace(server_pid=each * 10)
        )
        for each in (1, 2)
    ]
    made = SimpleNamespace(nodes=nodes, bootstrap_servers="h:1,h:2", wait=lambda: None)
    for command in (sandbox, demo):
        monkeypatch.setattr(command, "find_kafka", lambda **_: (SimpleNamespace(version="4.1.0"), None))
    monkeypatch.setattr(broker, "start_sandbox", lambda *_, **__: nullcontext(made))
    monkeypatch.setattr(restart, "serve", lambda *_: made.wait())
    return made


@pytest.mark.usefixtures("kafka")
def test_sandbox(cli):
    """The JSON document of ``sandbox`` shows the bootstrap servers, Kafka's version and each broker."""
    document = shown(cli, "sandbox", "--brokers", "2")
    assert (document["bootstrap_servers"], document["kafka_version"]) == ("h:1,h:2", "4.1.0")
    assert document["brokers"][1] == {"node_id": 2, "bootstrap_servers": "h:2", "pid": 20}


def test_a_sandbox_that_is_interrupted(cli, kafka, monkeypatch):
    """If Ctrl-C comes after ``sandbox`` printed its document, the exit code is 0.

    If it comes before, the exit code is 130, with an error document.
    """

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    kafka.wait = interrupt
    assert shown(cli, "sandbox")["bootstrap_servers"] == "h:1,h:2"
    monkeypatch.setattr(short_results, "sandbox", interrupt)
    assert shown(cli, "sandbox", code=130)["error"]["kind"] == "Interrupted"


@pytest.mark.usefixtures("kafka")
@pytest.mark.parametrize(("twice", "code"), [(0, 0), (3, 6)])
def test_demo(cli, monkeypatch, twice, code):
    """The document of ``demo`` counts records processed twice, even if the exit code is 6.

    The demo's own output goes to stderr.
    """
    ours, naive = (Count(produced=9, processed=9, skipped=0, twice=number) for number in (twice, 5))

    def play(story: Story) -> Ending:
        story._tell.say("Once upon a time")
        assert story._tell.stdout == 2
        return Ending(ours=ours, naive=naive)

    monkeypatch.setattr(Story, "play", play)
    done = cli("demo", *JSON, code=code)
    document = parsed(done.stdout)
    assert (document["output"], document["migrate_groups"]["twice"], document["naive"]["twice"]) == (
        "demo-out",
        twice,
        5,
    )
    assert "Once upon a time" in done.stderr


def test_an_interrupt(cli, monkeypatch):
    """If Ctrl-C ends a command, the exit code is 130, and the document says that nothing was written."""

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Connection, "open_reader", interrupted)
    status, out, err = cli.outcome("verify", "old", *JSON)
    message = "interrupted; nothing was written to the cluster"
    assert (status, err) == (130, f"{message}\n")
    assert parsed(out)["error"] == {"kind": "Interrupted", "exit_code": 130, "message": message}


def test_hostile_names_are_whole_and_harmless(cli):
    """A group name with quotes and control characters is unchanged in the parsed document.

    The printed text is printable ASCII.
    """
    cli.cluster.commit(HOSTILE, PARTITION, 5)
    out = cli("snapshot", HOSTILE, "-o", "s.csv", *JSON).stdout
    assert out.replace("\n", "").isascii()
    assert out.replace("\n", "").isprintable()
    assert parsed(out)["groups"][0]["group"] == HOSTILE
    assert error(cli, "snapshot", f"{HOSTILE}x", "-o", "t.csv", code=3)[0] == "GroupNotFound"


def test_a_path_that_is_no_utf_8(cli):
    """If a file name has bytes that are not UTF-8, the document shows them escaped, because JSON is Unicode text."""
    if sys.platform == "darwin":
        pytest.skip("its file systems have no such names")
    assert shown(cli, "snapshot", "old", "-o", "caf\udcff\u00e9.csv")["output"] == "caf\\xff\u00e9.csv"


def test_the_printed_plan_is_the_plan(cli):
    """With ``--format json``, a dry run prints the same bytes that ``--plan-out`` saves.

    A write also saves its plan with ``--plan-out``.
    """
    out = cli(*APPLY, "--dry-run", "--plan-out", "plan.json", *JSON).stdout
    assert out == (cli.folder / "plan.json").read_text()
    cli(*APPLY, "--plan-out", "written.json", *JSON)
    assert plan_json.load(cli.folder / "written.json").plan.to_write()[0].topic_partition == TopicPartition("t", 0)
