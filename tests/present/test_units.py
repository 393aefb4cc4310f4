from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from cockpit.model.ids import JobId, JobRef, Millis, named_id
from cockpit.present import units
from cockpit.present.bars import bar as spans_of_bar
from cockpit.present.moments import clock, iso, parse_moment
from cockpit.present.references import parse_reference
from tests.doubles.samples import HOUR, NOW


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0:00"), (7, "0:07"), (192, "3:12"), (11_529, "3:12:09"), (93_784, "1-02:03:04"), (-5, "0:00")],
)
def test_durations(seconds: int, shown: str) -> None:
    assert units.duration(seconds) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(14_399, "3:59"), (14_400, "4:00"), (61, "0:01"), (59, "59 s"), (-1, "0 s")]
)
@pytest.mark.req("JT-31")
def test_countdown_of_a_hold(seconds: int, shown: str) -> None:
    assert units.countdown(seconds) == shown


@pytest.mark.parametrize(
    ("mib", "shown"), [(512, "512M"), (1024, "1G"), (1536, "1.5G"), (524_288, "512G"), (1_572_864, "1.5T"), (0, "0M")]
)
def test_memory(mib: int, shown: str) -> None:
    assert units.memory(mib) == shown


@pytest.mark.req("UI-32")
@pytest.mark.parametrize(
    ("amount", "unit", "digits", "shown"),
    [
        (480, 1, 0, "480"),
        (1000, 1, 0, "1000"),
        (0, 1, 0, "0"),
        (1500, 1000, 1, "1.5"),
        (2000, 1000, 2, "2"),
        (10, 1, 1, "10"),
    ],
)
def test_only_zeros_behind_the_decimal_point_are_cut(amount: int, unit: int, digits: int, shown: str) -> None:
    assert units.decimal(amount, unit, digits=digits) == shown


@pytest.mark.parametrize(("milli", "number"), [(0, 0), (500, 0.5), (1000, 1), (2000, 2), (5500, 5.5), (333, 0.333)])
def test_cards(milli: int, number: float) -> None:
    assert units.cards(milli) == number
    assert str(units.cards(2000)) == "2"


@pytest.mark.parametrize(
    ("milli", "models", "said"),
    [(1000, "", "1 card"), (500, "", "0.5 card"), (1500, "", "1.5 cards"), (0, "", "0 cards"), (1000, "A", "1 A")],
)
def test_cards_in_sentences(milli: int, models: str, said: str) -> None:
    assert units.counted_cards(milli, models) == said


@pytest.mark.parametrize(
    ("part", "shown"), [(0.0, "    "), (0.5, "━━  "), (1.0, "━━━━"), (0.375, "━╸  "), (2.0, "━━━━")]
)
def test_bars_count_in_eighths(part: float, shown: str) -> None:
    assert units.bar(part, 4) == shown


@pytest.mark.parametrize(
    ("seconds", "said"), [(30, "30 s"), (600, "10 min"), (14_400, "4 h"), (183_600, "2 d 3 h"), (0, "0 s")]
)
def test_durations_in_sentences(seconds: int, said: str) -> None:
    assert units.spoken(seconds) == said


def test_times_for_programs_are_iso_in_utc() -> None:
    assert iso(Millis(NOW + 61_023)) == "2026-10-05T12:01:01.023Z"
    assert datetime.fromisoformat(iso(NOW)) == datetime(2026, 10, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "shown"), [(NOW, "14:00"), (NOW - 15 * HOUR, "10-04 23:00"), (NOW - 400 * 24 * HOUR, "2025-08-31 14:00")]
)
def test_times_for_people_are_as_short_as_possible_for_the_day(moment: int, shown: str) -> None:
    assert clock(Millis(moment), NOW, timezone(timedelta(hours=2))) == shown


def test_times_are_read_with_their_zone() -> None:
    assert parse_moment("2026-10-05T14:00+02:00") == NOW
    assert parse_moment("yesterday") is None


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("123", JobRef(JobId(123))),
        ("123_4", JobRef(JobId(123), task=4)),
        ("123+1", JobRef(JobId(124))),
        ("123/0", JobRef(JobId(123), rank=0)),
        ("123#2", JobRef(JobId(123), attempt=2)),
        ("lab:123/1#2", JobRef(JobId(123), rank=1, attempt=2, cluster="lab")),
        ("34_[0-1]", JobRef(JobId(34), tasks=(0, 1))),
        ("34_[0-6:3,9%2]", JobRef(JobId(34), tasks=(0, 3, 6, 9))),
        ("train", JobRef(JobId(0), name="train")),
        ("team-a/train", JobRef(JobId(0), name="team-a/train")),
        ("team-a/train/3", JobRef(JobId(0), rank=3, name="team-a/train")),
        ("k5v7500017b/1", JobRef(named_id(196_318_208, 1259), rank=1)),
        ("kubernetes1", JobRef(JobId(0), name="kubernetes1")),
        ("vit sweep_2/1", JobRef(JobId(0), rank=1, name="vit sweep_2")),
        ("1;rm", JobRef(JobId(0), name="1;rm")),
    ],
)
def test_job_references(text: str, reference: JobRef) -> None:
    assert parse_reference(text) == reference


@pytest.mark.parametrize(
    "text", ["", "-1", ".x", "1/", "a//b", "a/b/c", "/a", "1\n", "x\x1b", "x" * 64, "34_[]", "34_[1-]", "34_[0-999999]"]
)
def test_an_invalid_job_reference_is_refused(text: str) -> None:
    assert parse_reference(text) is None


@pytest.mark.parametrize(
    ("part", "shown"), [(0.0, "····"), (0.001, "╸···"), (0.5, "━━··"), (0.999, "━━━╸"), (1.0, "━━━━"), (1.5, "━━━━")]
)
def test_only_zero_is_an_empty_bar_and_only_the_total_a_full_one(part: float, shown: str) -> None:
    assert "".join(span.text for span in spans_of_bar(part, 4, "text")) == shown


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1K"),
        (3584, "3.5K"),
        ((1 << 20) - 1, "1024K"),
        (1 << 20, "1M"),
        (5 << 30, "5G"),
    ],
)
def test_sizes_in_bytes(amount: int, shown: str) -> None:
    assert units.size(amount) == shown
