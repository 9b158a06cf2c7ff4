"""The command that shows a migration on a local Kafka: demo."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.cli import kafka_here, options
from migrate_groups.cli.console import show_as, talk
from migrate_groups.cli.kafka_here import find_kafka, find_mirror_maker
from migrate_groups.errors import HandOverBroken, UsageError
from migrate_groups.sandbox.versions import DEFAULT_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from migrate_groups.demo.scene import Scene, Telling
    from migrate_groups.sandbox.jars import KafkaJars
    from migrate_groups.sandbox.java import Java

_STDERR = 2


class Tale(StrEnum):
    """The demonstrations among which ``--story`` chooses."""

    MIGRATION = "migration"
    OVERLOAD = "overload"
    CLUSTERS = "clusters"


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="The folder for the files of the demo.")
    ] = Path("demo-out"),
    story: Annotated[
        Tale,
        typer.Option(
            "--story",
            help="migration: a group is split, and this is undone. overload: one application restarts, and the others "
            "in its group wait; advise proposes a split, and the seconds before and after it are measured. clusters: "
            "an application moves to another cluster, to which MirrorMaker 2 copies its topics.",
        ),
    ] = Tale.MIGRATION,
    keep: Annotated[bool, typer.Option("--keep", help="Leave Kafka running until Ctrl-C.")] = False,
    kafka_version: kafka_here.KafkaVersion = DEFAULT_VERSION,
    kafka_home: kafka_here.KafkaHome = None,
    maven_mirror: kafka_here.MavenMirror = None,
    output_format: options.Format = "table",
) -> None:
    """Show a whole migration on a Kafka of this machine.

    Three applications share one group. Each gets a group of its own while a producer keeps producing. Then this is
    undone, and every record is counted. Other stories: --story. It needs Java 17 or later.

    Example: migrate-groups demo --story overload
    """
    _empty_folder(output)
    jars, java = find_kafka(version=kafka_version, home=kafka_home, maven_mirror=maven_mirror)
    mirror = None
    if story is Tale.CLUSTERS:
        mirror = find_mirror_maker(jars, java, home=kafka_home, maven_mirror=maven_mirror)
    talk(f"starting {'Kafka' if mirror is None else 'two Kafka'} {jars.version}{' and MirrorMaker 2' * bool(mirror)}")
    with (
        _telling(to_stderr=output_format == "json") as telling,
        _scene(story, jars, mirror, java, output, telling) as scene,
    ):
        ending = scene.play()
        from migrate_groups.show import short_results

        show_as(output_format, short_results.demo(output, ending))
        talk(f"the files are in {output}")
        if keep:
            talk(f"Kafka stays at {scene.where} until you press Ctrl-C")
            with suppress(KeyboardInterrupt):
                scene.wait()
    if not ending.ours.clean:
        raise HandOverBroken("records were skipped or processed twice")


@contextmanager
def _scene(
    story: Tale, jars: KafkaJars, mirror_jars: KafkaJars | None, java: Java, folder: Path, telling: Telling
) -> Iterator[Scene]:
    """Start the brokers for a demonstration, and yield the object that runs it.

    mirror_jars: MirrorMaker 2; None if the demonstration has one cluster. folder: gets the files of the demonstration.
    telling: the functions that print its progress.
    """
    from migrate_groups.sandbox.broker import start_sandbox

    if mirror_jars is not None:
        from migrate_groups.demo.clusters import Clusters
        from migrate_groups.sandbox.mirrored import GROUP_SYNC, start_mirrored

        with start_mirrored(jars, mirror_jars, java=java, settings=GROUP_SYNC) as both:
            yield Clusters(both, folder, telling)
    elif story is Tale.OVERLOAD:
        from migrate_groups.demo.overload import DELAY_MS, Overload

        with start_sandbox(jars, java=java, settings={"group.initial.rebalance.delay.ms": DELAY_MS}) as kafka:
            yield Overload(kafka, folder, telling)
    else:
        from migrate_groups.demo.story import Story

        with start_sandbox(jars, java=java) as kafka:
            yield Story(kafka, folder, telling)


def _empty_folder(folder: Path) -> None:
    """Make an empty folder. A folder that an earlier demo made is replaced.

    Raises `UsageError` if any other folder has this name, or if the folder can't be made.
    """
    marker = folder / "made-by-migrate-groups-demo"
    if folder.exists() and not marker.exists():
        raise UsageError(f"{folder} exists and is not an earlier demo's; name another folder with --output")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True)
        marker.touch()
    except OSError as error:
        raise UsageError(f"{folder} can't be made: {error.strerror or error}") from error


@contextmanager
def _telling(*, to_stderr: bool) -> Iterator[Telling]:
    """Yield the functions with which the demo prints on stdout, or on stderr if stdout is for a JSON document."""
    from rich.console import Console
    from rich.text import Text

    from migrate_groups.demo.scene import Telling

    console = Console(highlight=False, soft_wrap=True, stderr=to_stderr)
    status = console.status("")
    waits: list[str] = []

    def quietly(tell: Callable[[str], None]) -> Callable[[str], None]:
        def told(text: str) -> None:
            status.stop()
            # Without a terminal, a wait is shown once: with the last line of its progress.
            if waits:
                console.print(Text(f"  {waits.pop()}"))
            tell(text)

        return told

    def progress(text: str) -> None:
        if console.is_terminal:
            status.update(Text(text))
            status.start()
        else:
            waits[:] = [text]

    try:
        yield Telling(
            say=quietly(lambda text: console.print(Text(f"\n{text}", style="bold"))),
            command=quietly(lambda text: console.print(Text(f"\n$ {text}", style="cyan"))),
            progress=progress,
            stdout=_STDERR if to_stderr else None,
        )
    finally:
        status.stop()
