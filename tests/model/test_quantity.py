from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.model.quantity import duration_text, memory_text, parse_duration, parse_memory
from tests.hostile import HOSTILE


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("512M", 512),
        ("2G", 2048),
        ("2g", 2048),
        ("2Gi", 2048),
        ("2GB", 2048),
        ("2GiB", 2048),
        ("1.5Gi", 1536),
        ("1T", 1024 * 1024),
        ("1P", 1024 * 1024 * 1024),
        ("1" + " " * 63, 1),
        ("1024K", 1),
        ("1025K", 2),
        ("0.1G", 103),
        ("512", 512),
        (" 512 M ", 512),
        (512, 512),
    ],
)
def test_memory_is_binary_and_rounded_up(text: object, mib: int) -> None:
    assert parse_memory(text) == mib


@pytest.mark.parametrize(
    "text", ["", "M", "12X", "-1G", "1,5G", "1e3M", "0x10", "٣G", True, 1.5, None, [], "9" * 400, "1" + " " * 64]
)
def test_an_invalid_memory_amount_is_reported(text: object) -> None:
    error = parse_memory(text)
    assert isinstance(error, str)
    assert "512M" in error


@pytest.mark.req("JT-21")
@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("10m", 600),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("1.5h", 5400),
        ("2d", 172_800),
        ("1w", 604_800),
        ("90", 90),
        (90, 90),
        ("1:30", 90),
        ("90:00", 5400),
        ("4:00:00", 14_400),
        ("2-12", 216_000),
        ("2-12:30", 217_800),
        ("2-12:00:00", 216_000),
        ("0.5s", 1),
    ],
)
def test_durations_in_units_and_as_slurm_writes_them(text: object, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "UNLIMITED",
        "-5m",
        "1:60",
        "1:00:60",
        "1-24",
        "1-2:60",
        "1-2:3:60",
        "1:2:3:4",
        "5x",
        True,
        1.5,
        None,
        {},
    ],
)
def test_an_invalid_duration_is_reported(text: object) -> None:
    error = parse_duration(text)
    assert isinstance(error, str)
    assert "1h30m" in error


@pytest.mark.req("TR-05")
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_refused_with_an_escaped_message(text: str) -> None:
    for error in (parse_memory(text), parse_duration(text)):
        assert isinstance(error, str)
        assert error.isprintable()
        assert len(error) < 400


@given(st.integers(0, 1 << 40))
def test_memory_reads_back(mib: int) -> None:
    assert parse_memory(memory_text(mib)) == mib


@given(st.integers(0, 10**9))
def test_durations_read_back(seconds: int) -> None:
    assert parse_duration(duration_text(seconds)) == seconds


def test_texts_are_short() -> None:
    assert memory_text(2048) == "2G"
    assert memory_text(2 * 1024 * 1024) == "2T"
    assert memory_text(1025 * 1024) == "1025G"
    assert memory_text(0) == "0M"
    assert memory_text(1500) == "1500M"
    assert duration_text(5400) == "1h30m"
    assert duration_text(0) == "0s"
