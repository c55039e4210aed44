"""triage.ranks.timestamps"""

from __future__ import annotations

import calendar
import datetime
import re

import pytest
from hypothesis import given, strategies as st

from triage.ranks.timestamps import GLOG, ISO, SYSLOG, epoch_seconds, match_time_zone

AT = 1_795_230_465.0  # 2026-11-21 03:07:45 UTC
MOMENTS = st.datetimes(datetime.datetime(1970, 1, 2), datetime.datetime(2099, 12, 30)).map(
    lambda moment: moment.replace(microsecond=0)
)


def parse(pattern: str, text: str, year: int = 2026) -> float | None:
    """Return the seconds of `text`, which must match as a whole."""
    match = re.fullmatch(pattern, text)
    assert match
    return epoch_seconds(match, year)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-21 03:07:45", AT),
        ("2026/11/21 03:07:45", AT),
        ("2026-11-21T03:07:45Z", AT),
        ("2026-11-21_03:07:45", AT),
        ("2026-11-21-03:07:45.372.001", AT + 0.372),
        ("2026-11-21 03:07:45,372", AT + 0.372),
        ("2026-11-21 03:07:45:372", AT + 0.372),
        ("2026-11-21T03:07:45.372001+00:00", AT + 0.372001),
        ("2026-11-21T04:07:45+0100", AT),
        ("2026-11-20T19:37:45-07:30", AT),
        ("2026-11-21T08:37:45.5+05:30", AT + 0.5),
        ("2026-12-31T23:59:60Z", calendar.timegm((2027, 1, 1, 0, 0, 0))),
        ("2028-02-29 00:00:00", calendar.timegm((2028, 2, 29, 0, 0, 0))),
    ],
)
def test_iso_stamps(text: str, expected: float) -> None:
    """Zones are applied, a leap second is the next minute, and every kind of fraction counts."""
    assert parse(ISO, text) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-29 00:00:00",
        "2026-02-30 00:00:00",
        "2026-04-31 00:00:00",
        "2026-13-01 00:00:00",
        "2026-00-10 00:00:00",
        "2026-01-00 00:00:00",
        "2026-01-32 00:00:00",
        "2026-01-01 24:00:00",
        "2026-01-01 00:60:00",
        "2026-01-01 00:00:61",
        "0000-01-01 00:00:00",
        "1969-12-31 23:59:59",
    ],
)
def test_a_date_that_does_not_exist_gives_none(text: str) -> None:
    """Nothing is guessed from an impossible date."""
    assert parse(ISO, text) is None


def test_glog_has_no_year_and_no_fraction() -> None:
    """The caller gives the year; the nine digits come from another clock and are dropped."""
    assert parse(GLOG, "E1121 03:07:45.999999999") == AT
    assert parse(GLOG, "W1121 03:07:45.356000", 2025) == calendar.timegm((2025, 11, 21, 3, 7, 45))
    assert parse(GLOG, "I0229 03:07:45.1", 2026) is None
    assert parse(GLOG, "I0229 03:07:45.1", 2028) is not None


def test_glog_may_have_a_year() -> None:
    """Newer releases write the year before the month; eight digits are a date with one, four are without."""
    assert parse(GLOG, "F20261121 03:07:45.356000", year=1999) == AT
    assert parse(GLOG, "F1121 03:07:45.356000") == AT


def test_syslog_may_have_a_year() -> None:
    """`dmesg -T` writes the year at the end; else the caller gives it."""
    assert parse(SYSLOG, "Nov 21 03:07:45") == AT
    assert parse(SYSLOG, "Nov 21 03:07:45 2025") == calendar.timegm((2025, 11, 21, 3, 7, 45))
    assert parse(SYSLOG, "Nov  1 03:07:45") == calendar.timegm((2026, 11, 1, 3, 7, 45))
    assert parse(SYSLOG, "Feb 30 03:07:45") is None


@given(MOMENTS, st.integers(-14 * 60, 14 * 60))
def test_every_moment_is_parsed(moment: datetime.datetime, minutes: int) -> None:
    """A timestamp in any zone gives the same moment."""
    zone = datetime.timezone(datetime.timedelta(minutes=minutes))
    utc = moment.replace(tzinfo=datetime.UTC)
    assert parse(ISO, moment.isoformat(" ")) == utc.timestamp()
    assert (
        parse(ISO, moment.replace(tzinfo=zone).isoformat()) == moment.replace(tzinfo=zone).timestamp()
        or moment.year < 1971
    )
    assert parse(GLOG, f"I{moment:%m%d %H:%M:%S}.123456789", moment.year) == utc.timestamp()
    assert parse(SYSLOG, f"{moment:%b} {moment.day:2d} {moment:%H:%M:%S}", moment.year) == utc.timestamp()


@given(st.integers(-56, 56), st.floats(0, 299))
def test_a_timestamp_takes_the_zone_of_the_outer_timestamp(quarters: int, delay: float) -> None:
    """Zones are quarters of an hour apart; the outer timestamp is slightly later."""
    assert match_time_zone(AT + 900 * quarters, AT + delay) == AT


def test_a_delayed_line_has_the_outer_timestamp() -> None:
    """Seven minutes are not a zone."""
    assert match_time_zone(AT, AT + 420) == AT + 420


@pytest.mark.parametrize(("delay", "is_zone"), [(300, True), (301, False), (-300, True), (-301, False)])
def test_a_line_is_at_most_five_minutes_late(delay: int, is_zone: bool) -> None:
    """Farther from a quarter of an hour it has the outer time."""
    assert match_time_zone(AT, AT + 3600 + delay) == (AT + 3600 if is_zone else AT + 3600 + delay)


@pytest.mark.parametrize("days", [365, 366, -365])
def test_a_stamp_of_a_wrong_year_takes_that_of_the_outer_timestamp(days: int) -> None:
    """glog's stamps have no year, and the one that is assumed may be wrong: days are whole quarters of an hour."""
    assert match_time_zone(AT - days * 86_400, AT + 7) == AT
