"""The command that shows members, committed offsets and lag of groups: describe."""

from __future__ import annotations

from typing import Annotated

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import show_as, talk, warn_of_hidden_groups, warn_of_hidden_topics
from migrate_groups.errors import UsageError


def describe(
    groups: options.Groups = None,
    group: options.GroupOption = None,
    *,
    all_groups: Annotated[bool, typer.Option("--all-groups", help="Describe every group of the cluster.")] = False,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="TOPIC",
            help="Only partitions of this topic, and the members that read it or whose topics are not known. A topic, "
            "or a quoted glob such as 'payments.*'; may be repeated.",
        ),
    ] = None,
    time_lag: options.TimeLag = False,
    output_format: options.TableFormat = "table",
    connection: Connection,
) -> None:
    """Show the members, committed offsets and lag of groups; of named ones also what was handed over.

    Example: migrate-groups describe big-group --bootstrap-server localhost:9092
    """
    if all_groups and (groups or group):
        raise UsageError("--all-groups describes every group: name none")
    if not (all_groups or groups or group):
        raise UsageError("no group given: name at least one, or pass --all-groups")
    wanted = [] if all_groups else options.all_groups(groups, group)
    from migrate_groups.snapshots.selection import TopicPattern

    patterns = [TopicPattern(each) for each in topic or ()]
    with connection.open_reader() as reader:
        from migrate_groups.migration.reading import groups as reading
        from migrate_groups.migration.reading.claims import claims_in_words
        from migrate_groups.migration.reading.status import with_time_lags
        from migrate_groups.show import groups as views

        clock = SystemClock()
        if all_groups:
            found = reading.of_topics(reading.list_groups(reader, clock, topics=patterns), patterns)
        else:
            found = reading.describe(reader, wanted, clock, topics=patterns)
        if time_lag:
            found, remark = with_time_lags(reader, found)
            if remark:
                talk(f"warning: {remark}")
        if all_groups:
            warn_of_hidden_groups(reader)
        elif claims := claims_in_words(reader, wanted):
            talk(*claims)
        warn_of_hidden_topics(reader)
    show_as(output_format, views.descriptions(found))
