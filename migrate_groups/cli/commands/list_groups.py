"""The command that lists the groups of a cluster: list."""

from __future__ import annotations

from typing import Annotated

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import show_as, warn_of_hidden_groups, warn_of_hidden_topics


def list_groups(
    *,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="TOPIC",
            help="Only groups with a committed offset, an assignment or a subscription for this topic, and groups "
            "whose topics are not known. TOPICS and LAG count this topic alone. A topic, or a quoted glob such as "
            "'payments.*'; may be repeated.",
        ),
    ] = None,
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            metavar="STATE",
            help="Only groups in this state, such as Stable or Empty, in any letter case; may be repeated.",
        ),
    ] = None,
    group_type: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Only groups of this type: classic, consumer (KIP-848), share or streams; may be repeated.",
        ),
    ] = None,
    output_format: options.TableFormat = "table",
    connection: Connection,
) -> None:
    """List groups with state, type, members, topics and lag.

    Example: migrate-groups list --topic 'payments.*' --state Stable --bootstrap-server localhost:9092
    """
    from migrate_groups.snapshots.selection import TopicPattern

    patterns = [TopicPattern(each) for each in topic or ()]
    with connection.open_reader() as reader:
        from migrate_groups.migration.reading import groups
        from migrate_groups.show import groups as views

        found = groups.list_groups(reader, SystemClock(), topics=patterns, states=state or (), types=group_type or ())
        warn_of_hidden_groups(reader)
        warn_of_hidden_topics(reader)
    show_as(output_format, views.listing(found))
