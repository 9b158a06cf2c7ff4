"""What a sandbox needs: Java, and Kafka's jars from a Maven repository that may fail at any point."""

from __future__ import annotations

import dataclasses
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from migrate_groups.errors import ClusterUnavailable, MissingDependency, UsageError
from migrate_groups.sandbox.archive import archive_options
from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.sandbox.ivy import FetchProgress
from migrate_groups.sandbox.jars import KafkaJars, fetch_jars, jars_of_distribution
from migrate_groups.sandbox.java import Java, find_java
from tests.support.cli import Cli
from tests.support.maven import VERSION, MavenRepository, kafka_repository, send

ALL_JARS = [
    "kafka-clients-9.9.9.jar",
    "kafka-tools-9.9.9.jar",
    "kafka_2.13-9.9.9.jar",
    "slf4j-api-1.2.3.jar",
    "slf4j-simple-1.2.3.jar",
]


@pytest.fixture
def repository() -> Iterator[MavenRepository]:
    """A Maven repository with Kafka 9.9.9."""
    with kafka_repository() as serving:
        yield serving


@pytest.fixture
def fetch(java: Java, repository: MavenRepository, tmp_path: Path):
    """A function that fetches Kafka 9.9.9 from the Maven repository into ``tmp_path``."""

    def fetch_it(report=lambda progress: None) -> KafkaJars:
        return fetch_jars(java=java, cache=tmp_path, version=VERSION, mirror=repository.url, report=report)

    return fetch_it


def fake_java(folder: Path, version: str) -> Path:
    """Create a fake ``bin/java`` that prints a version, and return its path.

    Like real ones it first prints a line about JAVA_TOOL_OPTIONS.
    """
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'Picked up JAVA_TOOL_OPTIONS: -Dversion \"99\"' >&2\necho '{version}' >&2\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("version", ['openjdk version "11.0.2" 2019-01-15', 'java version "1.8.0_292"'])
def test_old_java_is_a_one_line_error(tmp_path: Path, version: str):
    """If the Java found is older than 17, a one-line error names its version and the version to install."""
    old = fake_java(tmp_path, version)
    with pytest.raises(
        MissingDependency, match=r"^\S+ is Java (11|8), which is too old: install Java 17 .*$"
    ) as refused:
        find_java({"JAVA_HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    assert str(old) in str(refused.value)


@pytest.mark.parametrize("version", ['openjdk version "17" 2021-09-14', 'openjdk version "25-ea" 2025-09-16'])
def test_java_on_the_path_is_found(tmp_path: Path, version: str):
    """If JAVA_HOME is not set, the sandbox uses the ``java`` on the PATH if its version is 17 or later."""
    new = fake_java(tmp_path, version)
    assert find_java({"PATH": f"{new.parent}:{os.environ['PATH']}"}).executable == new


def test_missing_java_is_a_one_line_error(tmp_path: Path):
    """If ``java`` is missing or broken, or prints no version, a one-line error says what to install."""
    silent = tmp_path / "silent"
    fake_java(silent, "").write_text("#!/bin/sh\n")
    broken = tmp_path / "broken"
    fake_java(broken, "").write_text("\x00")
    for environment in ({"PATH": str(tmp_path)}, *({"JAVA_HOME": str(home)} for home in (tmp_path, silent, broken))):
        with pytest.raises(MissingDependency, match=r"^.*: install Java 17 or later.*$"):
            find_java(environment)


def test_jars_of_kafka_are_fetched_once(fetch, repository: MavenRepository, tmp_path: Path):
    """The first fetch downloads the jars of Kafka, of its tools and of a matching logger; a second fetch downloads
    nothing.

    The reported progress counts all jars.
    """
    steps: list[FetchProgress] = []
    kafka = fetch(steps.append)
    assert [jar.name for jar in kafka.jars] == ALL_JARS
    assert sorted(name for name in repository.sent if name.endswith(".jar")) == ALL_JARS
    assert steps[0] == FetchProgress()
    assert steps[-1] == FetchProgress(found=5, downloaded=5)
    repository.sent.clear()
    steps.clear()
    assert fetch(steps.append) == kafka
    assert repository.sent == []
    assert steps == []
    assert sorted(path.name for path in (tmp_path / "kafka").iterdir()) == [VERSION, f"{VERSION}.lock"]


def test_a_damaged_cache_is_fetched_again(fetch):
    """If a jar in the cache is missing or truncated, the jars of Kafka are fetched again."""
    deleted, cut_short, *_ = fetch().jars
    whole = cut_short.read_bytes()
    deleted.unlink()
    cut_short.write_bytes(whole[:-1])
    assert [jar.name for jar in fetch().jars] == ALL_JARS
    assert cut_short.read_bytes() == whole


def test_interrupted_download_is_resumed(fetch, repository: MavenRepository, tmp_path: Path):
    """If a download is interrupted, a one-line error names the missing files, and the next fetch downloads
    only these.
    """
    repository.failing["kafka-clients-9.9.9.jar"] = lambda request, content: send(request, content[:50], len(content))
    with pytest.raises(ClusterUnavailable, match=r"^.*org.apache.kafka:kafka-clients:9.9.9.*run this again.*$"):
        fetch()
    assert not (tmp_path / "kafka" / VERSION).exists()
    repository.failing.clear()
    repository.sent.clear()
    assert [jar.name for jar in fetch().jars] == ALL_JARS
    assert "kafka-clients-9.9.9.jar" in repository.sent
    assert "kafka_2.13-9.9.9.jar" not in repository.sent


@pytest.mark.parametrize("name", ["kafka-clients-9.9.9.pom", "slf4j-simple-1.2.3.pom"])
def test_missing_pom_fails_the_fetch(fetch, repository: MavenRepository, tmp_path: Path, name: str):
    """If the download of a module's POM fails, the fetch of Kafka fails, because the module's dependencies
    are unknown.
    """
    repository.failing[name] = lambda request, content: request.send_error(503)
    with pytest.raises(ClusterUnavailable, match=name.rpartition("-")[0]):
        fetch()
    assert not (tmp_path / "kafka" / VERSION).exists()


def test_html_page_in_place_of_a_jar_is_refused(fetch, repository: MavenRepository, tmp_path: Path):
    """If the Maven repository sends an HTML page in place of a jar, with status 200, the fetch fails."""
    page = b"<html>Please log in</html>"
    repository.failing["slf4j-api-1.2.3.jar"] = lambda request, content: send(request, page, len(page))
    with pytest.raises(ClusterUnavailable, match=r"damaged or missing: slf4j-api-1.2.3.jar"):
        fetch()
    assert not (tmp_path / "kafka" / VERSION).exists()


def test_files_of_a_killed_fetch_are_not_used(fetch, repository: MavenRepository, tmp_path: Path):
    """If a fetch is killed during a download, the cache contains no Kafka; the next fetch downloads it."""
    stalled, go_on = threading.Event(), threading.Event()

    def stall(request: object, content: bytes) -> None:
        stalled.set()
        go_on.wait()

    repository.failing["kafka-clients-9.9.9.jar"] = stall
    code = (
        "import os, sys; from pathlib import Path\n"
        "from migrate_groups.sandbox.jars import fetch_jars; from migrate_groups.sandbox.java import find_java\n"
        "fetch_jars(java=find_java(os.environ), cache=Path(sys.argv[1]), version=sys.argv[2], mirror=sys.argv[3])"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path), VERSION, repository.url]) as process:
        assert stalled.wait(60)
        process.kill()
    assert not (tmp_path / "kafka" / VERSION).exists()
    repository.failing.clear()
    go_on.set()
    assert [jar.name for jar in fetch().jars] == ALL_JARS


def test_concurrent_fetches_download_once(fetch, repository: MavenRepository):
    """If two fetches of Kafka's jars run at the same time, each jar is downloaded once, and both return the
    same files.
    """
    with ThreadPoolExecutor() as both:
        first, second = both.submit(fetch), both.submit(fetch)
    assert first.result() == second.result()
    assert sorted(name for name in repository.sent if name.endswith(".jar")) == ALL_JARS


def test_unreachable_mirror_is_a_one_line_error(tmp_path: Path):
    """If the Maven repository can't be reached, `migrate-groups sandbox` ends with exit code 5 and a one-line error.

    No jar is left.
    """
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        cli = Cli(tmp_path)
        cli.environment["XDG_CACHE_HOME"] = str(tmp_path)
        line = cli.fails("sandbox", "--maven-mirror", f"http://127.0.0.1:{unused.getsockname()[1]}/", code=5)
    assert "org.apache.kafka:kafka_2.13" in line
    assert "Connection refused" in line
    assert not list(tmp_path.rglob("*.jar"))


def test_malformed_version_is_a_usage_error(java: Java, tmp_path: Path):
    """If Kafka's version is not a version, but for example a path, the fetch is refused before any download."""
    for version in ("../4.1.0", "4", "latest"):
        with pytest.raises(UsageError, match="not a version"):
            fetch_jars(java=java, cache=tmp_path, version=version)
    assert list(tmp_path.iterdir()) == []


def test_kafka_runs_from_an_unpacked_distribution(java: Java, kafka_jars: KafkaJars, tmp_path: Path):
    """The sandbox runs with the jars of an unpacked Kafka distribution, even if Java's class-data archive can't be
    stored.
    """
    (tmp_path / "libs").mkdir()
    for jar in kafka_jars.jars:
        (tmp_path / "libs" / jar.name).symlink_to(jar)
    jars = jars_of_distribution(tmp_path, cache=Path(os.devnull))
    assert jars.version == kafka_jars.version
    assert archive_options(jars, java=java) == ()
    with start_sandbox(jars, java=java) as sandbox:
        assert str(tmp_path) in " ".join(sandbox.tool_command)


def test_kafka_home_that_is_not_kafka_is_a_usage_error(tmp_path: Path):
    """If ``--kafka-home`` is not the folder of a Kafka distribution, `sandbox` ends with exit code 2 and a one-line
    error.
    """
    assert "libs/kafka_2" in Cli(tmp_path).fails("sandbox", "--kafka-home", tmp_path, code=2)


def test_failed_class_data_archive_is_not_tried_again(java: Java, kafka_jars: KafkaJars, tmp_path: Path):
    """If Java could not create its class-data archive, an empty file records this, and there is no second attempt."""
    jars = dataclasses.replace(kafka_jars, archives=tmp_path)
    (option,) = archive_options(kafka_jars, java=java)
    (tmp_path / Path(option).name).touch()
    assert archive_options(jars, java=java) == ()
