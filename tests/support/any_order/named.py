"""For each defect that was fixed, the shortest story that shows it. A story's name is the required behaviour."""

from __future__ import annotations

from migrate_groups.model.partitions import TopicPartition
from tests.support.any_order.events import (
    At,
    Copy,
    Evict,
    Expire,
    ExpireGroup,
    Grow,
    Kill,
    Pass,
    Refuse,
    Reset,
    Stop,
    Straggle,
)
from tests.support.any_order.runs import AtOnce, Command, Run, Setting, Step

T, U = TopicPartition("t", 0), TopicPartition("u", 0)
# Target group ``a`` has committed offsets from an earlier trial.
TRIED = Setting(existing={("a", T): 30, ("a", U): 30}, on_existing="overwrite")

NAMED: dict[str, tuple[Setting, list[Step]]] = {
    "a rollback leaves a partition, whose offset expired in the source, in some group": (
        Setting(),
        [Command("hand-over"), Expire("old", T), Command("rollback")],
    ),
    "delete-offsets after a rollback leaves the source its offsets": (
        TRIED,
        [Command("hand-over"), Command("rollback"), Command("delete-offsets")],
    ),
    # The target group had committed offsets before the run. They do not show what the source group has processed.
    "hand-back after a rollback leaves the source where it stopped": (
        TRIED,
        [Command("hand-over"), Command("rollback"), Command("hand-back")],
    ),
    # The consumer commits every 5 s, so that a rollback sees it before the write or during the guard.
    "a rollback sees a consumer without membership": (
        Setting(),
        [
            Command("hand-over", starts=True, member=False),
            Command("rollback", stops=False, starts=True),
            Pass(10),
        ],
    ),
    "a rollback reads partitions that were in place before the run": (
        Setting(existing={("a", T): 10, ("a", U): 10}),
        [Command("hand-over", starts=True), Pass(10), Command("rollback", starts=True)],
    ),
    # A partition is added while the run waits for the source group. The run writes its log start offset.
    "a rollback leaves an added partition in some group": (
        Setting(),
        [Command("hand-over", events=(At("before committed", 1, Grow("u")),)), Command("rollback")],
    ),
    # The run is killed before it hands anything over.
    "hand-back after a killed migration leaves the source where it stopped": (
        TRIED,
        [Command("hand-over", events=(At("after receipt", 1, Kill()),)), Command("hand-back")],
    ),
    # The source group's offsets have been deleted. The target group's offset of u expires between two requests.
    "hand-back leaves a partition, whose offset expired in the target, in some group": (
        Setting(),
        [
            Command("hand-over"),
            Command("delete-offsets"),
            Command("hand-back", events=(At("before sleep", 1, Expire("a", U)),)),
        ],
    ),
    # After the expiry it is unknown how far the group had come.
    "the same command hands nothing over again to a group that has expired": (
        Setting(settle=0),
        [Command("hand-over", starts=True), Pass(6), Stop("a"), ExpireGroup("a"), Command("hand-over", starts=True)],
    ),
    # The group commits while the command, run again, reads back the offsets that it had confirmed.
    "the same command hands nothing over again to a group that starts meanwhile": (
        Setting(on_existing="overwrite"),
        [
            Command("hand-over", of="apply", starts=True, member=False),
            Command("hand-over", of="apply", again=True),
            Stop("c"),
            Command("hand-over", of="apply", again=True, starts=True),
        ],
    ),
    # The same, and then a new snapshot has another offset, because the source group came back.
    "a new snapshot is not handed over to a group that has started": (
        Setting(on_existing="overwrite", settle=0),
        [
            Command("hand-over", of="apply", starts=True, member=False),
            Command("hand-over", of="apply", again=True),
            Straggle("old", True, True),
            Stop("c"),
            Pass(4),
            Stop("old"),
            Command("hand-over", of="apply"),
        ],
    ),
    # Brokers refuse the claim on one of two partitions, and then the old group loses what it got back.
    "a hand-back that is run again gives back what the source group has lost since": (
        Setting(partitions={"t": 2, "u": 1}),
        [
            Command("hand-over"),
            Command("delete-offsets"),
            Command(
                "hand-back",
                events=(
                    At("after held", 1, Refuse(TopicPartition("t", 1), claim=True)),
                    At("before alter_offsets", 4, ExpireGroup("old")),
                ),
            ),
        ],
    ),
    # Both hand over to group a. The claims of the second are refused, and meanwhile a starts.
    "a run whose group another run has started says so": (
        Setting(
            runs={"one": Run(verb="apply"), "two": Run()}, on_existing="forward", on_removed="restore", latest=False
        ),
        [
            AtOnce(Command("hand-over", of="one", starts=True, member=False), Command("hand-over", of="two"), (29, 8)),
            Command("hand-over", of="two"),
        ],
    ),
}

# Stories of several runs, which fail without the claims of the runs.
_OVERLAPPING: dict[str, tuple[Setting, list[Step]]] = {
    "a topic that one run has handed over is not handed over by another": (
        Setting(),
        [Command("hand-over", starts=True), Pass(5), Command("hand-over", of="apply")],
    ),
    "a topic that two runs hand over at once is handed over by one of them": (
        Setting(),
        [AtOnce(Command("hand-over"), Command("hand-over", of="apply"), (30, 30))],
    ),
    "a run whose target group has handed the topics on is not handed back": (
        Setting(runs={"one": Run(), "two": Run(source="a", to={"t": "b", "u": "b"})}),
        [
            Command("hand-over", of="one", starts=True),
            Pass(5),
            Command("hand-over", of="two", starts=True),
            Command("hand-back", of="one"),
        ],
    ),
    "delete-offsets leaves the source its offsets if another run has handed the topics back to it": (
        Setting(
            runs={"one": Run(), "two": Run(source="a", to={"t": "old", "u": "old"}, verb="apply")},
            on_existing="overwrite",
        ),
        [
            Command("hand-over", of="one"),
            Command("hand-over", of="two"),
            Command("delete-offsets", of="one"),
        ],
    ),
    "a copy of a run directory does not undo what its original has undone": (
        Setting(),
        [
            Command("hand-over"),
            Copy("split"),
            Command("hand-back"),
            Command("hand-over", of="apply"),
            Command("hand-back", of="copy/split"),
        ],
    ),
    "a target group gives back its own offsets too when a run is rolled back": (
        Setting(
            runs={"one": Run(to={"t": "a"}), "two": Run(source="a", to={"t": "b"})},
            existing={("a", T): 30},
            on_existing="overwrite",
        ),
        [Command("hand-over", of="one"), Command("rollback", of="one"), Command("hand-over", of="two")],
    ),
    # The application commits also for the partition that was added during the hand-over.
    "a partition that was added to a topic during a run is not handed over after its rollback": (
        Setting(
            runs={"one": Run(verb="apply"), "two": Run(source="a", to={"t": "b", "u": "c"})}, on_uncommitted="leave"
        ),
        [
            Command("hand-over", of="one", starts=True, events=(At("after receipt", 2, Grow("u")),)),
            Command("rollback", of="one"),
            Command("hand-over", of="two"),
        ],
    ),
    "a run that is handed back does not say so again after another run has handed over": (
        Setting(runs={"one": Run(), "two": Run()}),
        [
            Command("hand-over", of="one"),
            Command("hand-back", of="one"),
            Command("hand-over", of="two"),
            Command("hand-back", of="one"),
            Command("delete-offsets", of="two"),
        ],
    ),
    # Brokers refuse the claim on u, so the run hands over only t, with exit code 4.
    "a run is not rolled back if another run has a topic that it could not claim": (
        Setting(runs={"one": Run(to={"t": "a", "u": "b"}), "two": Run(to={"u": "c"})}),
        [
            Command("hand-over", of="one", events=(At("after held", 1, Refuse(U, claim=True)),)),
            Command("hand-over", of="two"),
            Command("rollback", of="one"),
        ],
    ),
    "a run that can't claim again what it has handed over has still handed it over": (
        Setting(runs={"one": Run(), "two": Run(source="a", to={"t": "b"})}),
        [
            Command("hand-over", of="one"),
            Command("hand-over", of="two"),
            Command("hand-over", of="two", events=(At("after held", 1, Refuse(T, claim=True)),)),
            Command("hand-back", of="one"),
        ],
    ),
    "a run does not hand over again what another copy of its directory has handed over": (
        Setting(existing={("a", T): 12, ("a", U): 28}, on_existing="overwrite"),
        [
            Command("hand-over"),
            Command("rollback"),
            Copy("split"),
            Command("hand-over", of="copy/split", starts=True, member=False),
            Pass(10),
            Stop("a"),
            Command("hand-over"),
        ],
    ),
    "a run does not take an offset from its receipt after another run has given the topic back": (
        Setting(runs={"one": Run(), "two": Run(source="a", to={"t": "old", "u": "old"})}),
        [
            Command("hand-over", of="one"),
            Command("hand-over", of="two", starts=True),
            Pass(10),
            Stop("old"),
            Expire("old", T),
            Command("hand-over", of="one", starts=True),
        ],
    ),
    # The rollback would restore the offset of a from before the first run, and then two would hand that one over.
    "a run does not hand over again after another run has given the topics back": (
        Setting(
            runs={"one": Run(to={"t": "a", "u": "b"}), "two": Run(source="a", to={"t": "old", "u": "old"})},
            existing={("a", T): 37, ("b", U): 17},
            on_existing="overwrite",
            settle=0,
        ),
        [
            Command("hand-over", of="one"),
            Command("hand-over", of="two"),
            Command("hand-over", of="one"),
            Command("rollback", of="one"),
            Command("hand-over", of="two"),
        ],
    ),
    # The lock is lost right before the claims, and old has its offset for u already.
    "a run does not hand over what it could not claim, although the offset is in place": (
        Setting(
            runs={"one": Run(verb="apply"), "two": Run(source="a", to={"t": "b", "u": "old"})},
            on_existing="forward",
        ),
        [
            Command("hand-over", of="one"),
            Command("hand-over", of="two", events=(At("before alter_offsets", 3, Evict("old")),)),
            Command("delete-offsets", of="one"),
        ],
    ),
    "a run that has lost its run directory does not hand over again to a group that has run": (
        Setting(on_existing="overwrite"),
        [
            Command("hand-over", starts=True),
            Pass(5),
            Copy("split", receipt=False),
            Stop("a"),
            Command("hand-over", of="copy/split", starts=True),
        ],
    ),
    # The rollback ends with exit code 4. Until it is complete, target group a has its earlier offsets.
    "a target group hands nothing on while its own offsets are being restored": (
        Setting(
            runs={"one": Run(to={"t": "a"}), "two": Run(source="a", to={"t": "old", "u": "old"})},
            existing={("a", T): 20},
            on_existing="overwrite",
            on_uncommitted="latest",
            guard=0,
        ),
        [
            Command("hand-over", of="one"),
            Command("rollback", of="one", events=(At("before receipt", 2, Evict("a")),)),
            Command("hand-over", of="two"),
        ],
    ),
    # The first run of the old group is still at work when the other run would take its topics, with exit code 4.
    "a target group hands nothing on before it was told to start": (
        Setting(runs={"one": Run(), "two": Run(source="a", to={"t": "b", "u": "b"})}, settle=0, latest=True),
        [
            Command("hand-over", of="one"),
            Command("rollback", of="one", starts=True, member=False),
            Command("hand-over", of="one", stops=False),
            Command("hand-over", of="two", events=(At("any", 25, Refuse(T, claim=False)),)),
            Command("rollback", of="two"),
        ],
    ),
}

# Stories of commands that follow a hand-over with exit code 4.
_AFTER_EXIT_4: dict[str, tuple[Setting, list[Step]]] = {
    # The consumer of the old group commits during the hand-over, which ends with exit code 4. Then the offset expires.
    "a rollback does not set an offset that its group lost after it had consumed again": (
        Setting(runs={"one": Run(verb="apply")}, settle=0),
        [
            Command("hand-over", of="one", events=(At("after alter_offsets", 1, Straggle("old", True, True)),)),
            Command("hand-back", of="one", events=(At("any", 31, Expire("old", U)),)),
            Command("rollback", of="one"),
        ],
    ),
    "a hand-back does not set an offset that its group lost after it had consumed again": (
        Setting(runs={"one": Run(verb="apply")}, settle=0),
        [
            Command("hand-over", of="one", events=(At("after alter_offsets", 1, Straggle("old", True, True)),)),
            Stop("old"),
            Expire("old", U),
            Command("hand-back", of="one"),
        ],
    ),
    "a hand-back does not set the offsets of a group that is gone after it had consumed again": (
        Setting(runs={"one": Run(verb="apply")}, settle=0),
        [
            Command("hand-over", of="one", events=(At("after alter_offsets", 1, Straggle("old", True, True)),)),
            Stop("old"),
            ExpireGroup("old"),
            Command("hand-back", of="one"),
        ],
    ),
    # Brokers refuse the offsets of two partitions, on which a consumer of the new group then reads on from its own.
    "delete-offsets waits for partitions that were refused, although their group has read on": (
        Setting(
            partitions={"t": 2, "u": 1},
            existing={("a", TopicPartition("t", 1)): 33, ("a", T): 10, ("a", U): 30},
            on_existing="overwrite",
        ),
        [
            Command("hand-over", events=(At("before alter_offsets", 1, Straggle("a", True, True)),)),
            Command("delete-offsets"),
        ],
    ),
    # The rollback has set the offsets from before. Somebody then resets them by hand, before it reads them back.
    "a hand-back does not take what a group has after its rollback for what it has read": (
        Setting(existing={("a", T): 30, ("a", U): 30}, on_existing="overwrite", settle=0),
        [
            Command("hand-over"),
            Command(
                "rollback", events=tuple(At("before receipt", 2, Reset("a", partition, 36)) for partition in (T, U))
            ),
            Command("hand-back"),
        ],
    ),
}
NAMED |= _OVERLAPPING | _AFTER_EXIT_4

REVERTED = dict(zip(NAMED, (1, 2, 3, 4), strict=False)) | dict.fromkeys(_OVERLAPPING, 5)
REVERTED |= dict(zip(_AFTER_EXIT_4, (6, 6, 6, 7, 8), strict=True))
"""By name, the key of `reverts.FIXES` without which the story fails."""
