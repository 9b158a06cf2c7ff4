"""Commands that run a real Kafka on this machine: sandbox, demo."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.cli import options
from migrate_groups.cli.console import show, talk
from migrate_groups.cli.progress import fetch_bar
from migrate_groups.errors import HandOverBroken, UsageError
from migrate_groups.sandbox.versions import DEFAULT_VERSION, DOWNLOAD_MB

if TYPE_CHECKING:
    from collections.abc import Callable

    from migrate_groups.demo.story import Ending, Telling
    from migrate_groups.sandbox.jars import KafkaJars
    from migrate_groups.sandbox.java import Java

KafkaVersion = Annotated[str, typer.Option("--kafka-version", metavar="VERSION", help="The version of Kafka to fetch.")]
KafkaHome = Annotated[
    Path | None,
    typer.Option(
        "--kafka-home",
        metavar="FOLDER",
        envvar="MIGRATE_GROUPS_KAFKA_HOME",
        help="An unpacked Kafka distribution to use; nothing is fetched then.",
    ),
]


def sandbox(
    kafka_version: KafkaVersion = DEFAULT_VERSION,
    kafka_home: KafkaHome = None,
    mirror: options.Mirror = None,
    brokers: Annotated[
        int, typer.Option("--brokers", min=1, max=9, help="How many: of three, any one may fail and come back.")
    ] = 1,
) -> None:
    """Run a real Kafka on this machine, until Ctrl-C.

    Nothing of it stays behind.

    The first line on stdout is its address, or its brokers' addresses. Needs Java 17 or later.

    Example: migrate-groups sandbox
    """
    jars, java = find_kafka(version=kafka_version, home=kafka_home, mirror=mirror)
    from migrate_groups.sandbox.broker import start_sandbox

    talk(f"starting Kafka {jars.version} (the very first start takes some seconds more)")
    # Ctrl-C is the way to stop the sandbox, so from here on an interrupt is not a failure.
    with start_sandbox(jars, java=java, brokers=brokers) as kafka, suppress(KeyboardInterrupt):
        for node in kafka.nodes if brokers > 1 else ():
            talk(f"broker {node.node_id} is {node.bootstrap_servers}, process {node.pid}")
        talk(
            f"Kafka {jars.version} runs until you press Ctrl-C; its data goes with it. In another terminal, say:",
            f"  migrate-groups snapshot GROUP -o before.csv --bootstrap-server {kafka.bootstrap_servers}",
        )
        show(kafka.bootstrap_servers)
        kafka.wait()


def find_kafka(*, version: str, home: Path | None, mirror: str | None) -> tuple[KafkaJars, Java]:
    """Return Kafka's jars and a Java that runs them.

    The jars are those of the Kafka distribution in ``home``, if given. Otherwise they come from this user's cache, and
    are fetched first, with visible progress, if it lacks this version.
    """
    from migrate_groups.sandbox.jars import fetch_jars, jars_of_distribution, user_cache
    from migrate_groups.sandbox.java import find_java

    java = find_java(os.environ)
    if home:
        return jars_of_distribution(home, cache=user_cache()), java
    with fetch_bar(f"Kafka {version}", DOWNLOAD_MB) as report:
        return fetch_jars(java=java, cache=user_cache(), version=version, mirror=mirror, report=report), java


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the files stay.")] = Path(
        "demo-out"
    ),
    keep: Annotated[bool, typer.Option("--keep", help="Leave Kafka running to play with, until Ctrl-C.")] = False,
    kafka_version: KafkaVersion = DEFAULT_VERSION,
    kafka_home: KafkaHome = None,
    mirror: options.Mirror = None,
) -> None:
    """Tell the whole story on a real Kafka.

    A group is split while a producer keeps producing, and every record is counted.

    Example: migrate-groups demo
    """
    _empty_folder(output)
    jars, java = find_kafka(version=kafka_version, home=kafka_home, mirror=mirror)
    from migrate_groups.demo.story import Story
    from migrate_groups.sandbox.broker import start_sandbox

    talk(f"starting Kafka {jars.version}")
    with start_sandbox(jars, java=java) as kafka, _telling() as telling:
        ending = Story(kafka, output, telling).play()
        _show_ending(ending, output)
        if keep:
            talk(f"Kafka stays at {kafka.bootstrap_servers} until you press Ctrl-C")
            with suppress(KeyboardInterrupt):
                kafka.wait()
    if not ending.ours.clean:
        raise HandOverBroken("records were skipped or processed twice")


def _empty_folder(folder: Path) -> None:
    """Make a new folder; replace it if an earlier demo made it. Raises `UsageError` if any other folder is there."""
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
def _telling() -> Iterator[Telling]:
    from rich.console import Console
    from rich.text import Text

    from migrate_groups.demo.story import Telling

    console = Console(highlight=False, soft_wrap=True)
    status = console.status("")

    def quietly(tell: Callable[[str], None]) -> Callable[[str], None]:
        def told(text: str) -> None:
            status.stop()
            tell(text)

        return told

    def progress(text: str) -> None:
        if console.is_terminal:
            status.update(Text(text))
            status.start()
        else:
            console.print(Text(f"  {text}"))

    try:
        yield Telling(
            say=quietly(lambda text: console.print(Text(f"\n{text}", style="bold"))),
            command=quietly(lambda text: console.print(Text(f"\n$ {text}", style="cyan"))),
            progress=progress,
        )
    finally:
        status.stop()


def _show_ending(ending: Ending, folder: Path) -> None:
    from migrate_groups.show.tables import table

    result = table("", produced=">", processed=">", skipped=">", twice=">")
    for way, count in (("migrate-groups", ending.ours), ("the naive way", ending.naive)):
        result.add_row(
            way, *(f"{number:,}" for number in (count.produced, count.processed, count.skipped, count.twice))
        )
    ours = ending.ours
    show(
        "",
        result,
        "",
        f"produced {ours.produced:,}, processed {ours.processed:,}, skipped {ours.skipped:,}, twice {ours.twice:,}",
    )
    talk(f"the files are in {folder}")
