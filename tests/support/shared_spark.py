"""One Spark session for all tests of a process, and a check after each test that its settings are unchanged."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from migrate_groups.spark.session import active_session, beside, local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The Spark session that all tests of this process share. Commands that run in this process use it, too."""
    settings = {"spark.local.dir": str(tmp_path_factory.mktemp("spark"))}
    # A run that was killed leaves its tables behind, and another run must not find them.
    settings["spark.sql.warehouse.dir"] = str(tmp_path_factory.mktemp("warehouse"))
    with local_session(small=True, settings=settings) as session:
        yield session


@pytest.fixture
def compiled(spark: SparkSession) -> Iterator[SparkSession]:
    """A second Spark session, which compiles expressions, as in jobs over many rows."""
    with beside(spark) as session:
        session.conf.set("spark.sql.codegen.wholeStage", "true")
        session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
        yield session


@pytest.fixture(scope="module", autouse=True)
def old_plans_freed() -> Iterator[None]:
    """Free the DataFrames of a module's tests, because Spark keeps the plan of each one that Python still has."""
    yield
    if active_session() is not None:
        gc.collect()


@pytest.fixture(autouse=True)
def spark_as_it_was(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that changes the shared session's settings, or leaves another session active.

    Afterwards the data that the test cached in Spark is dropped, because Spark would compare each later plan with it.
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
    """Return all settings with one call of Py4J, because PySpark's own ``getAll`` makes two calls for each setting."""
    return sorted(session._jsparkSession.conf().getAllAsJava().toString().split(", "))
