"""triage.ranks.stamps"""

from __future__ import annotations

import calendar
import datetime
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.ranks.stamps import GLOG, ISO, SYSLOG, agreed, seconds

AT = 1_795_230_465.0  # 2026-11-21 03:07:45 UTC
MOMENTS = st.datetimes(datetime.datetime(1970, 1, 2), datetime.datetime(2099, 12, 30)).map(
    lambda moment: moment.replace(microsecond=0)
)


def read(pattern: str, text: str, year: int = 2026) -> float | None:
    """The seconds of `text`, which must match as a whole."""
    match = re.fullmatch(pattern, text)
    assert match
    return seconds(match, year)


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
    """Zones are taken off, a leap second is the next minute, and every kind of fraction counts."""
    assert read(ISO, text) == pytest.approx(expected, abs=1e-6)


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
def test_a_date_that_does_not_exist_is_no_time(text: str) -> None:
    """Nothing is guessed from an impossible date."""
    assert read(ISO, text) is None


def test_glog_takes_its_year_from_outside_and_drops_its_fraction() -> None:
    """The nine digits come from another clock than the seconds."""
    assert read(GLOG, "E1121 03:07:45.999999999") == AT
    assert read(GLOG, "W1121 03:07:45.356000", 2025) == calendar.timegm((2025, 11, 21, 3, 7, 45))
    assert read(GLOG, "I0229 03:07:45.1", 2026) is None
    assert read(GLOG, "I0229 03:07:45.1", 2028) is not None


def test_syslog_takes_its_year_from_outside_unless_it_has_one() -> None:
    """`dmesg -T` writes the year at the end."""
    assert read(SYSLOG, "Nov 21 03:07:45") == AT
    assert read(SYSLOG, "Nov 21 03:07:45 2025") == calendar.timegm((2025, 11, 21, 3, 7, 45))
    assert read(SYSLOG, "Nov  1 03:07:45") == calendar.timegm((2026, 11, 1, 3, 7, 45))
    assert read(SYSLOG, "Feb 30 03:07:45") is None


@given(MOMENTS, st.integers(-14 * 60, 14 * 60))
def test_every_moment_comes_back(moment: datetime.datetime, minutes: int) -> None:
    """A stamp in any zone is the moment it was."""
    zone = datetime.timezone(datetime.timedelta(minutes=minutes))
    utc = moment.replace(tzinfo=datetime.UTC)
    assert read(ISO, moment.isoformat(" ")) == utc.timestamp()
    assert (
        read(ISO, moment.replace(tzinfo=zone).isoformat()) == moment.replace(tzinfo=zone).timestamp()
        or moment.year < 1971
    )
    assert read(GLOG, f"I{moment:%m%d %H:%M:%S}.123456789", moment.year) == utc.timestamp()
    assert read(SYSLOG, f"{moment:%b} {moment.day:2d} {moment:%H:%M:%S}", moment.year) == utc.timestamp()


@given(st.integers(-56, 56), st.floats(0, 299))
def test_a_stamp_without_a_zone_gets_that_of_the_stamp_around_it(quarters: int, late: float) -> None:
    """Zones are quarters of an hour apart; the line was written a bit before it was carried."""
    assert agreed(AT + 900 * quarters, AT + late) == AT


def test_a_line_that_was_held_up_has_the_time_of_its_carrier() -> None:
    """Seven minutes are no zone."""
    assert agreed(AT, AT + 420) == AT + 420
