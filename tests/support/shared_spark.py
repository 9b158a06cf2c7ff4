"""One Spark session for all tests of a process, and a look after each that it is as it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from migrate_groups.spark.session import active_session, beside, local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one session of all these tests. Commands that run in this process borrow it."""
    settings = {"spark.local.dir": str(tmp_path_factory.mktemp("spark"))}
    with local_session(small=True, settings=settings) as session:
        yield session


@pytest.fixture
def compiled(spark: SparkSession) -> Iterator[SparkSession]:
    """A session beside the shared one that compiles expressions, as it is done for jobs that are not small."""
    with beside(spark) as session:
        session.conf.set("spark.sql.codegen.wholeStage", "true")
        session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
        yield session


@pytest.fixture(autouse=True)
def spark_as_it_was(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves the shared session with other settings, or another session active.

    What a test has persisted goes, since Spark compares each later plan with it.
    """
    if "spark" not in request.fixturenames:
        yield
        return
    session: SparkSession = request.getfixturevalue("spark")
    settings = _settings(session)
    yield
    assert active_session() is session
    assert _settings(session) == settings
    session.catalog.clearCache()


def _settings(session: SparkSession) -> list[str]:
    """All settings in one call of Py4J: PySpark's own ``getAll`` makes two for each."""
    return sorted(session._jsparkSession.conf().getAllAsJava().toString().split(", "))
