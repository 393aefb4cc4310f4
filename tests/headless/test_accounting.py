"""`cockpit accounting`: what ended jobs held and used, sums of them, and card-hours over days."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from cockpit.model.capabilities import Ability
from cockpit.model.job import JobState
from tests.doubles.samples import HOUR, NOW
from tests.headless.conftest import Desk


@pytest.mark.req("JT-48")
def test_ended_jobs_are_listed_with_their_allocation_and_usage(desk: Desk) -> None:
    titles, first, second, third = desk("accounting").lines
    assert titles.split()[-7:] == ["CPU", "TIME", "PEAK", "MEM", "CARD-HOURS", "CARDS", "%"]
    assert first.split()[-5:] == ["2:00:00", "7:00:00", "12G", "1.00", "81"]
    assert second.split()[-5:] == ["1:00:00", "–", "–", "0.00", "–"]
    assert third.split()[0] == "4698"
    (row, *_) = json.loads(desk("accounting", "-o", "json").out)["rows"]
    assert (row["elapsed_seconds"], row["cpu_seconds"], row["peak_memory_mib"]) == (7200, 25_200, 12_288)
    assert (row["card_hours"], row["cpu_hours"], row["cpu_percent"], row["exit_code"]) == (1.0, 8.0, 87.5, 3)


@pytest.mark.req("JT-48")
@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ((), (NOW - 7 * 24 * HOUR, None, None)),
        (("--since", "2h", "--until", "1h"), (NOW - 2 * HOUR, NOW - HOUR, None)),
        (("--since", "2026-10-05T09:00Z", "--user", "ann"), (1791190800000, None, "ann")),
    ],
)
def test_the_time_is_absolute_or_relative(desk: Desk, words: tuple[str, ...], asked: tuple[object, ...]) -> None:
    desk("accounting", *words)
    assert desk.backend.asked[-1] == ("accounting", *asked)


@pytest.mark.req("JT-48", "UI-41")
@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (("--account", "nlp"), [4715, 4699]),
        (("--state", "succeeded"), [4698]),
        (("--filter", "card_hours>=1 !user:bob"), [4698]),
        (("--account", "nlp", "--filter", "user:ann"), [4699]),
        (("--sort", "peak_memory"), [4698, 4715, 4699]),
    ],
)
def test_jobs_are_chosen_by_options_and_by_the_filter(desk: Desk, words: tuple[str, ...], ids: list[int]) -> None:
    assert [row["id"] for row in json.loads(desk("accounting", *words, "-o", "json").out)["rows"]] == ids


@pytest.mark.req("UI-09")
def test_sums_are_of_the_chosen_jobs(desk: Desk) -> None:
    assert [line.split() for line in desk("accounting", "--by", "account").lines[1:]] == [
        ["nlp", "2", "2", "0", "0", "3:00:00", "7:00:00", "12.00", "1.00"],
        ["vision", "1", "0", "0", "0", "1:00:00", "1:00:00", "4.00", "1.00"],
    ]
    rows = json.loads(desk("accounting", "--by", "user", "--account", "vision", "-o", "json").out)["rows"]
    assert [(row["name"], row["jobs"]) for row in rows] == [("ann", 1)]


@pytest.mark.req("UI-09")
def test_sums_distinguish_failed_stopped_and_expired_jobs(desk: Desk) -> None:
    states = (JobState.ERROR, JobState.STOPPED, JobState.STOPPED, JobState.EXPIRED, JobState.SUCCEEDED)
    first = desk.backend.ended_jobs[0]
    desk.backend.ended_jobs = [replace(first, row=replace(first.row, state=state)) for state in states]
    (row,) = json.loads(desk("accounting", "--by", "user", "-o", "json").out)["rows"]
    assert (row["jobs"], row["failed"], row["stopped"], row["expired"]) == (5, 1, 2, 1)


@pytest.mark.req("UI-09")
def test_card_hours_of_each_day_by_name(desk: Desk) -> None:
    rows = json.loads(desk("accounting", "hours", "--days", "3", "-o", "json").out)["rows"]
    assert [(row["name"], row["card_hours"], row["by_day"]) for row in rows] == [
        ("vision", 72.0, [72.0, 0.0, 0.0]),
        ("nlp", 72.0, [0.0, 48.0, 24.0]),
    ]
    by_user = desk("accounting", "hours", "--days", "3", "--by", "user").lines
    assert [line.split()[0] for line in by_user[1:]] == ["ann", "bob", "others"]
    assert by_user[1].split()[-1] == "█▁▁"
    edges = desk.backend.asked[-1][1:]
    assert (len(edges), edges[-1]) == (4, NOW)


@pytest.mark.req("UI-41")
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--since", "soonish"), "is neither a moment"),
        (("hours", "--days", "0"), "not between 1 and 366"),
        (("--by", "colour"), "invalid choice"),
    ],
)
def test_an_invalid_time_or_option_is_reported(desk: Desk, words: tuple[str, ...], complaint: str) -> None:
    done = desk("accounting", *words)
    assert (done.code, complaint in done.err) == (64, True)


@pytest.mark.req("UI-09")
@pytest.mark.parametrize("days", [1, 366])
def test_card_hours_are_of_one_day_up_to_a_year(desk: Desk, days: int) -> None:
    (row, *_) = json.loads(desk("accounting", "hours", "--days", str(days), "-o", "json").out)["rows"]
    assert len(row["by_day"]) == days


@pytest.mark.req("UI-09")
def test_card_hours_are_of_the_last_week_unless_another_number_of_days_is_given(desk: Desk) -> None:
    (row, *_) = json.loads(desk("accounting", "hours", "-o", "json").out)["rows"]
    assert len(row["by_day"]) == 7


@pytest.mark.req("KU-07", "UI-09")
@pytest.mark.parametrize("words", [("accounting",), ("accounting", "hours")])
def test_a_cluster_that_forgets_ended_jobs_says_how_far_its_accounting_reaches(
    desk: Desk, words: tuple[str, ...]
) -> None:
    assert desk(*words, "-o", "json").err == ""
    why = "Only ended jobs that are still there are counted."
    desk.backend.capabilities = desk.backend.capabilities.without({Ability.EVERY_END: why})
    shown = desk(*words, "-o", "json")
    assert why in shown.err
    assert json.loads(shown.out)
