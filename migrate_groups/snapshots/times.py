"""Parse and format times and durations.

A time is RFC 3339, or milliseconds since 1970, like a record's timestamp. A duration is a text such as ``1h30m``, or
ISO 8601 without years and months.
"""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, datetime, timedelta, tzinfo

from migrate_groups.arguments import LONGEST
from migrate_groups.errors import UsageError
from migrate_groups.text import did_you_mean

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_LAST_MILLISECOND = 253_402_300_799_999
# As milliseconds these numbers are days in the 1970s, before Kafka; as seconds they are the years 1973 to 5138.
_SECONDS = range(10**8, 10**11)
_RFC_3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?([Zz]|[+-][0-9]{2}:[0-9]{2})?"
)
_ISO_8601 = re.compile(
    r"P(?:(?P<weeks>[0-9]+)W)?(?:(?P<days>[0-9]+)D)?"
    r"(?:T(?:(?P<hours>[0-9]+)H)?(?:(?P<minutes>[0-9]+)M)?(?:(?P<seconds>[0-9]+(?:\.[0-9]+)?)S)?)?"
)
_OF_REWIND = "--to-datetime"
"""The option beside which --by-duration and --timezone are options too."""
_MOMENTS = "2026-11-09T21:24:55Z, 2026-11-09T21:24:55.250+11:00, or milliseconds since 1970"


def parse_duration(text: str, name: str) -> float:
    """Return the seconds of a duration such as ``10s``, ``500ms`` or ``1m30s``. name: the option, for the error.

    Raises `UsageError` if the text is not a duration with units, or is longer than 24 days.
    """
    seconds = _seconds(text, name)
    if seconds > LONGEST:
        raise UsageError(f"{name} is {text[:60]!r}; expected a duration of at most 24d")
    return seconds


def _seconds(text: str, name: str) -> float:
    # A number without a unit is refused; Kafka's own tools take it as milliseconds.
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|w)", text)
    if not parts or "".join(map("".join, parts)) != text:
        raise UsageError(
            f"{name} is {text!r}; expected a duration with a unit (ms, s, m, h, d or w), such as 10s or 1m30s"
        )
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def parse_span(text: str, name: str) -> timedelta:
    """Return the time span of a text such as ``90m``, ``1h30m``, or ISO 8601's ``PT1H30M`` and ``P1D``.

    name: the option, for the error. Raises `UsageError` if the text is not a positive time span.
    """
    length = text.removeprefix("-")
    iso = _ISO_8601.fullmatch(length)
    try:
        if iso and length[-1] not in "PT":
            span = timedelta(**{unit: float(number) for unit, number in iso.groupdict().items() if number})
        else:
            span = timedelta(seconds=_seconds(length, name))
    except UsageError as error:
        expected = "a time span such as 90m, 1h30m, PT1H30M or P1D; years and months have no fixed length"
        raise UsageError(f"{name} is {text!r}; expected {expected}") from error
    except OverflowError as error:
        raise UsageError(f"{name} is {text!r}, which is too long; expected a shorter time span") from error
    # Kafka's own tool takes a negative span for a time in the future, and goes to the log end
    # (docs/kafka-behaviour.md#kafkas-own-tool).
    if length != text or not span:
        raise UsageError(f"{name} is {text!r}; expected a positive time span, which goes back from now")
    return span


def parse_zone(name: str) -> zoneinfo.ZoneInfo:
    """Return the time zone of an IANA name such as ``Australia/Sydney``. Raises `UsageError` for an unknown name."""
    try:
        return zoneinfo.ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # OSError: a folder of the database, such as "Australia"
        # No guess for an abbreviation: the zone with the most similar letters may be half a day off, as EST for AEST.
        known = [] if re.fullmatch("[A-Za-z]{2,5}", name) else zoneinfo.available_timezones()
        advice = did_you_mean([name], known) or "expected a name such as Australia/Sydney, not an abbreviation"
        raise UsageError(f"unknown time zone {name!r}: {advice}") from error


def parse_moment(text: str, zone: tzinfo | None, now: datetime, name: str) -> int:
    """Return a time, given as RFC 3339 or as milliseconds since 1970, in milliseconds since 1970.

    zone: the time zone of a time without a UTC offset; None makes such a time an error. name: the option, for the
    error. A fraction of a millisecond is rounded up.

    Raises `UsageError` if the text is not a time, if the time is after ``now`` or before 1970, if a number looks like
    seconds, or if a clock change repeats or skips the local time.
    """
    said = f"{name} is {text!r}"
    if re.fullmatch("[0-9]{1,15}", text):
        return checked_moment(int(text), now, said)
    return _since_1970(_until(now, _parse_rfc_3339(text, zone, name), said), said)


def checked_moment(moment: int, now: datetime, said: str) -> int:
    """Return a time in milliseconds since 1970 unchanged, after a check.

    said: the beginning of the error message, such as ``--to-datetime is '5'``. Raises `UsageError` if the number looks
    like seconds, or if the time is after ``now`` or before 1970.
    """
    if moment in _SECONDS:
        raise UsageError(f"{said}, which is {rfc_3339(moment)} in milliseconds: if it is in seconds, pass {moment}000")
    return _since_1970(_until(now, moment, said), said)


def moment_before(now: datetime, span: timedelta, name: str) -> int:
    """Return ``now`` minus a time span, in milliseconds since 1970.

    name: the option, for the error. Raises `UsageError` for a time before 1970.
    """
    return _since_1970((now - _EPOCH - span) // _MILLISECOND, f"{name} is {span_in_words(span)}")


def milliseconds_of(moment: datetime) -> int:
    """Return a time in milliseconds since 1970, rounded down."""
    return (moment - _EPOCH) // _MILLISECOND


def moment_of(milliseconds: int) -> datetime:
    """Return the UTC time of milliseconds since 1970. A time after the year 9999 becomes the end of that year."""
    return _EPOCH + timedelta(milliseconds=min(milliseconds, _LAST_MILLISECOND))


def rfc_3339(milliseconds: int, zone: tzinfo = UTC) -> str:
    """Return milliseconds since 1970 as an RFC 3339 text in a time zone.

    A time after the year 9999 becomes the end of that year.
    """
    moment = moment_of(milliseconds)  # some producers write microseconds, which are years after 9999
    if moment.year < 9999:
        moment = moment.astimezone(zone)
    text = moment.isoformat(timespec="milliseconds" if moment.microsecond else "seconds")
    return text.removesuffix("+00:00") + "Z" if zone is UTC else text


def span_in_words(span: timedelta) -> str:
    """Return a time span in its two largest units: ``3 d 4 h``, ``1 h 30 min``, ``250 ms``."""
    rest = round(span / _MILLISECOND)
    words = []
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1)):
        number, rest = divmod(rest, size)
        words += [f"{number} {unit}"] if number else []
    return " ".join(words[:2]) or "0 s"


def _parse_rfc_3339(text: str, zone: tzinfo | None, name: str) -> int:
    match = _RFC_3339.fullmatch(text)
    if not match:
        raise UsageError(f"{name} is {text!r}; expected a time such as {_MOMENTS}{_instead(name)}")
    date, clock, fraction, offset = match.groups()
    try:
        local = datetime.fromisoformat(f"{date}T{clock}")
        there = datetime.fromisoformat(f"{date}T{clock}{offset.upper()}") if offset else _in_zone(local, zone, name)
        whole = milliseconds_of(there)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{name} is {text!r}: {error}; expected a time such as {_MOMENTS}") from error
    # A fraction of a millisecond is rounded up, so that no record before the given time is replayed.
    nanoseconds = int((fraction or "").ljust(9, "0"))
    return whole - -nanoseconds // 1_000_000


def _instead(name: str) -> str:
    return "; --by-duration 1d: a day ago" if name == _OF_REWIND else ""


def _until(now: datetime, moment: int, said: str) -> int:
    if moment > milliseconds_of(now):
        raise UsageError(f"{said}, which is in the future: it is now {rfc_3339(milliseconds_of(now))}")
    return moment


def _since_1970(moment: int, said: str) -> int:
    # ListOffsets gives negative timestamps another meaning: -1 is the log end offset, -2 the log start offset.
    if moment < 0:
        raise UsageError(f"{said}, which is before 1970: use --to-earliest for the log start offset")
    return moment


def _in_zone(local: datetime, zone: tzinfo | None, name: str) -> datetime:
    """Return a local time with its time zone. name: the option, for the error.

    Raises `UsageError` if ``zone`` is None, or if a clock change repeats or skips the time.
    """
    text = local.isoformat()
    if zone is None:
        zone_option = ", or pass --timezone Australia/Sydney to say what it means" if name == _OF_REWIND else ""
        raise UsageError(
            f"{name} is {text!r}, a time without a UTC offset: end it with Z or, for instance, +11:00{zone_option}"
        )
    readings = [local.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
    if readings[0].utcoffset() == readings[1].utcoffset():
        return readings[0]
    # Both readings show the local time if the clock repeats it, and neither shows it if the clock skips it.
    real = [reading.astimezone(UTC).astimezone(zone) for reading in readings]
    both = " or ".join(each.isoformat() for each in real)
    if real[0].replace(tzinfo=None) == local:
        raise UsageError(f"{name} is {text!r}, which occurs twice in {zone}, because clocks go back: pass {both}")
    raise UsageError(f"{name} is {text!r}, which does not occur in {zone}, because clocks go forward: pass {both}")
