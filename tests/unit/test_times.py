"""Timestamps and time spans on the command line: what each form means, and which ambiguous forms are refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate_groups.errors import UsageError
from migrate_groups.snapshots.times import (
    milliseconds_of,
    moment_before,
    parse_moment,
    parse_span,
    parse_zone,
    rfc_3339,
    span_in_words,
)

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
SYDNEY = ZoneInfo("Australia/Sydney")
SECOND = 1_667_989_495_000


def moment(text: str, zone: ZoneInfo | None = None) -> int:
    return parse_moment(text, zone, NOW, "--to-datetime")


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("2022-11-09T10:24:55Z", SECOND),
        ("2022-11-09T21:24:55+11:00", SECOND),
        ("2022-11-09t10:24:55z", SECOND),
        ("2022-11-09 10:24:55-00:00", SECOND),
        ("2022-11-09T10:24:55.25Z", SECOND + 250),
        ("2022-11-09T10:24:55.250000000Z", SECOND + 250),
        ("2022-11-09T10:24:55.250000001Z", SECOND + 251),
        ("2022-11-09T10:24:55.999999999Z", SECOND + 1000),
        ("1667989495000", SECOND),
        ("0", 0),
    ],
)
def test_unambiguous_timestamps_are_accepted(text, milliseconds):
    """RFC 3339 timestamps with Z or a UTC offset, and milliseconds since 1970, are accepted.

    A fraction of a millisecond is rounded up.
    """
    assert moment(text) == milliseconds
    assert moment(text, SYDNEY) == milliseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "-5",
        "1e12",
        "2022-11-09",
        "2022-11-09T10:24Z",
        "2022-13-09T10:24:55Z",
        "2022-11-09T10:24:60Z",
        "2022-11-09T10:24:55 Z",
        "2022-11-09T10:24:55+25:00",
        "2022-11-09T10:24:55.0000000001Z",
        "٢022-11-09T10:24:55Z",
    ],
)
def test_invalid_timestamps_are_refused_with_an_example(text):
    """A text that is not a complete timestamp is refused, and the error shows an example of an accepted form."""
    with pytest.raises(UsageError, match="expected a time such as 2026-11-09T21:24:55Z"):
        moment(text)


def test_a_local_time_needs_a_time_zone():
    """A timestamp without a UTC offset is refused unless ``--timezone`` names its time zone.

    The daylight saving time of the zone is respected.
    """
    with pytest.raises(UsageError, match=r"a time without a UTC offset.*--timezone"):
        moment("2022-11-09T21:24:55")
    assert moment("2022-11-09T21:24:55", SYDNEY) == SECOND
    assert rfc_3339(moment("2022-06-09T12:00:00", SYDNEY)) == "2022-06-09T02:00:00Z"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("2022-04-03T02:30:00", r"occurs twice.*2022-04-03T02:30:00\+11:00 or 2022-04-03T02:30:00\+10:00"),
        ("2022-10-02T02:30:00", r"does not occur.*2022-10-02T03:30:00\+11:00 or 2022-10-02T01:30:00\+10:00"),
    ],
)
def test_a_local_time_at_a_clock_change_is_refused_with_both_readings(text, complaint):
    """If a local time occurs twice or never because of a clock change, it is refused.

    The error shows both times that may be meant.
    """
    with pytest.raises(UsageError, match=complaint):
        moment(text, SYDNEY)


@given(
    local=st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2026, 1, 1)),
    name=st.sampled_from(["UTC", "Asia/Kathmandu", "Europe/Dublin", "Australia/Lord_Howe"]),
)
def test_a_local_time_must_occur_exactly_once_in_its_zone(local, name):
    """A local time is accepted if it occurs exactly once in the time zone, and refused otherwise."""
    zone, local = ZoneInfo(name), local.replace(microsecond=0)
    offsets = [timedelta(minutes=15 * quarters) for quarters in range(-60, 61)]
    instants = [local.replace(tzinfo=UTC) - offset for offset in offsets]
    real = [instant for instant in instants if instant.astimezone(zone).replace(tzinfo=None) == local]
    try:
        found = moment(local.isoformat(), zone)
    except UsageError:
        assert len(real) != 1
    else:
        assert [milliseconds_of(instant) for instant in real] == [found]


def test_seconds_since_1970_are_refused():
    """A number of seconds since 1970 is refused: read as milliseconds, it would be a time in January 1970.

    The error shows this time, and the number of milliseconds to pass.
    """
    with pytest.raises(UsageError, match=r"1970-01-21T18:42:46\.800Z in milliseconds: .* pass 1795366800000"):
        moment("1795366800")
    assert (moment("0"), moment("1668000000000")) == (0, 1668000000000)


def test_a_time_in_the_future_or_before_1970_is_refused():
    """A timestamp in the future is refused.

    So is a timestamp before 1970, because negative timestamps have another meaning for brokers.
    """
    assert moment("2026-11-20T12:00:00Z") == milliseconds_of(NOW)
    for text in ("2026-11-20T12:00:00.001Z", "9999-12-31T23:59:59-14:00", "999999999999999"):
        with pytest.raises(UsageError, match="in the future"):
            moment(text)
    for text in ("1969-12-31T23:59:59.999Z", "0001-01-01T00:00:00+14:00"):
        with pytest.raises(UsageError, match="before 1970"):
            moment(text)
    with pytest.raises(UsageError, match="before 1970"):
        moment_before(NOW, timedelta(days=30_000), "--by-duration")


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("PT1H30M", timedelta(hours=1, minutes=30)),
        ("P1D", timedelta(days=1)),
        ("P2W", timedelta(weeks=2)),
        ("P1DT0.5S", timedelta(days=1, seconds=0.5)),
        ("90m", timedelta(minutes=90)),
        ("1h30m", timedelta(minutes=90)),
        ("1d", timedelta(days=1)),
        ("250ms", timedelta(milliseconds=250)),
        ("1w", timedelta(weeks=1)),
    ],
)
def test_time_spans_are_accepted(text, span):
    """``--by-duration`` accepts ISO 8601 durations and short forms such as 90m.

    The time span is subtracted from the present time.
    """
    assert parse_span(text, "--by-duration") == span
    assert moment_before(NOW, span, "--by-duration") == milliseconds_of(NOW - span)


_FORMS = "expected a time span such as 90m, 1h30m, PT1H30M or P1D"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        # Years, months and a number without a unit have no defined length.
        *(
            (text, _FORMS)
            for text in ("", "P", "PT", "90", "P1Y", "P1M", "pt1h", "1h 30m", "P1H", "P1DT", "P-1D", "--1h")
        ),
        # Kafka's own tool takes -P1D for tomorrow, and so for the log end.
        *((text, "expected a positive time span") for text in ("PT0S", "0m", "-P1D", "-90m", "P0D")),
        *((text, "too long") for text in ("99999999999d", "P99999999999W")),
    ],
)
def test_a_time_span_that_can_be_misread_is_refused(text, complaint):
    """A time span without a defined length, of zero or less, or too long for any date is refused.

    So is one in any other form than the accepted ones.
    """
    with pytest.raises(UsageError, match=complaint):
        parse_span(text, "--by-duration")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        *(
            (name, "unknown time zone")
            for name in ("", "Australia", "Mars/Base", "../../etc/passwd", "/etc/localtime", "a\0b")
        ),
        *((name, "did you mean Australia/Sydney") for name in ("Australia/Sydny", "australia/sydney")),
        # A name similar to an abbreviation may be hours off, such as EST for AEST. So none is suggested.
        *(
            (name, "expected a name such as Australia/Sydney, not an abbreviation")
            for name in ("AEST", "aest", "CEST", "ESTT")
        ),
    ],
)
def test_unknown_zones_are_refused(name, complaint):
    """A time zone that is not an IANA name is refused, and so are folders and paths. A similar name is suggested."""
    with pytest.raises(UsageError, match=complaint):
        parse_zone(name)


def test_times_and_spans_are_shown_in_words():
    """Times are shown with Z or the zone's UTC offset, and time spans in their two largest units."""
    assert rfc_3339(SECOND) == "2022-11-09T10:24:55Z"
    assert rfc_3339(SECOND + 1, SYDNEY) == "2022-11-09T21:24:55.001+11:00"
    words = {timedelta(hours=25, minutes=3): "1 d 1 h", timedelta(seconds=90): "1 min 30 s", timedelta(0): "0 s"}
    assert {span: span_in_words(span) for span in words} == words
