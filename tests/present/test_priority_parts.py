"""A priority as a stacked bar, as columns, and in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.model.cluster import PriorityKind, Weights
from cockpit.model.ids import JobId, Millis
from cockpit.model.priority import Breakdown, FactorName, Part
from cockpit.model.view import Priorities, PriorityRow
from cockpit.present.columns import Context
from cockpit.present.priority import stepped, with_step
from cockpit.present.priority_columns import CellContext, Figures, Shape, laid_out_priorities
from cockpit.present.priority_panel import legend, nothing_to_rank, priority_answer, trial_words
from cockpit.present.priority_parts import SIGNS, amounts, counting_factors, longest, of_jobs, stacked
from cockpit.present.spans import Line, line_width, plain
from cockpit.present.tables.priority import factors_of

AGE, FAIR, TRES = FactorName.AGE, FactorName.FAIRSHARE, FactorName.TRES
WEIGHTS = Weights(age=1000, fairshare=2000, tres={"cpu": 10, "gres/gpu": 90})
SCALE = CellContext(whole=1000, letters=True, figures=Figures.CONTRIBUTION)


def breakdown(age: float = 0, fair: float = 0, nice: int = 0, *tres: Part) -> Breakdown:
    parts = (Part(AGE, age / 1000, 1000, age), Part(FAIR, fair / 2000, 2000, fair), *tres)
    total = max(int(sum(part.contribution for part in parts)) - nice, 1)
    return Breakdown(JobId(1), "gpu", total, parts, nice)


def row(number: int, place: int | None, made: Breakdown | None, **fields: object) -> PriorityRow:
    plain_row = PriorityRow(JobId(number), f"job-{number}", "ann", "nlp", "normal", "gpu", place, made)
    return replace(plain_row, **fields)


def text(lines: list[Line]) -> list[str]:
    return [plain(each) for each in lines]


@pytest.mark.req("UI-07")
@pytest.mark.parametrize(
    ("made", "bar"),
    [
        (breakdown(250, 500), "aaaaaFFFFFFFFFF"),
        (breakdown(250, 500, 100), "aaaaaFFFFFFFF--"),
        (breakdown(250, 0, 1000), "-----"),
        (breakdown(0, 500, -250), "FFFFFFFFFFnnnnn"),
        (breakdown(0, 0), ""),
    ],
)
def test_a_bar_has_each_factors_letter_and_the_nice_deduction(made: Breakdown, bar: str) -> None:
    assert plain(stacked(made, 1000, 20, letters=True)) == bar


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.integers(-(10**6), 10**6), st.integers(1, 60))
def test_a_bar_is_as_long_as_its_sum_and_never_longer_than_its_width(
    age: float, fair: float, nice: int, columns: int
) -> None:
    made = breakdown(age, fair, nice)
    whole = longest([row(1, 1, made)])
    assert line_width(stacked(made, whole, columns, letters=False)) <= columns
    if age + fair > 2:
        assert abs(line_width(stacked(made, age + fair + max(-nice, 0), columns, letters=True)) - columns) <= 1


@pytest.mark.req("UI-07")
def test_a_whole_bar_is_the_most_that_the_factors_of_one_job_add() -> None:
    direct = Breakdown(JobId(1), "gpu", 9000, (), direct=True)
    rows = [row(1, 1, breakdown(100, 0, 50)), row(2, 2, breakdown(60)), row(3, 3, direct), row(4, None, None)]
    assert longest(rows) == 100
    assert longest([row(1, 1, breakdown(100, 0, -50))]) == 150
    assert longest([]) == 0


def test_resources_are_one_factor_together() -> None:
    made = breakdown(0, 0, 0, Part(TRES, 0.5, 10, 5, "cpu"), Part(TRES, 1, 90, 90, "gres/gpu"))
    assert amounts(made)[TRES] == (0.95, 100, 95)


def test_only_factors_that_weigh_count_and_the_sites_where_it_adds() -> None:
    assert counting_factors(WEIGHTS, [row(1, 1, breakdown(1))]) == (AGE, FAIR, TRES)
    site = Breakdown(JobId(1), "gpu", 7, (Part(FactorName.SITE, 7, 1, 7),))
    assert counting_factors(Weights(), [row(1, 1, None), row(2, 2, site)]) == (FactorName.SITE,)


@pytest.mark.req("UI-07", "UI-24")
@pytest.mark.parametrize("total", [79, 99, 119, 199, 300])
@pytest.mark.parametrize("tried", [False, True])
def test_the_layout_fills_its_width_and_shows_the_factor_that_leads(total: int, tried: bool) -> None:
    shape = Shape(tuple(SIGNS), FactorName.QOS, 5, 3, 7, 6, tried, queues=True)
    columns = laid_out_priorities(total, shape)
    assert sum(width for _, width in columns) + 2 * (len(columns) - 1) == total
    ids = [column.id for column, _ in columns]
    assert "qos_factor" in ids
    assert ("position_before" in ids) is tried
    assert next(width for column, width in columns if column.id == "bar") >= 10


@pytest.mark.req("UI-07")
def test_the_bar_becomes_narrow_only_for_the_factor_that_leads() -> None:
    def layout(total: int, first: FactorName | None) -> tuple[list[str], int]:
        shape = Shape((AGE, FactorName.QOS), first, 4, 3, 6, 7, tried=False, queues=False)
        widths = {column.id: width for column, width in laid_out_priorities(total, shape)}
        return [name for name in widths if name in {"age", "qos_factor"}], widths["bar"]

    assert layout(63, FactorName.QOS) == ([], 19)
    assert layout(64, FactorName.QOS) == (["qos_factor"], 12)
    assert [layout(total, None)[0] for total in (71, 72, 80, 81)] == [[], ["age"], ["age"], ["age", "qos_factor"]]


def test_rows_without_a_bar_show_the_reason() -> None:
    shape = Shape((AGE,), None, 5, 3, 7, 6, tried=False, queues=False)
    cell = next(column.drawn for column, _ in laid_out_priorities(119, shape) if column.id == "bar")
    direct = Breakdown(JobId(1), "gpu", 9000, (), direct=True)
    assert plain(cell(row(1, 1, direct), SCALE, 20)) == "set by an administrator"
    assert plain(cell(row(1, None, breakdown(5)), SCALE, 20)) == "held, and not considered"
    assert plain(cell(row(0, 1, None), SCALE, 20)) == ""


QUEUE = [
    row(4, 1, breakdown(900, 100)),
    row(5, 2, breakdown(100, 800, 50)),
    row(6, 3, None, job=JobId(0)),
    row(7, 4, breakdown(100)),
]


@pytest.mark.req("UI-07")
def test_the_job_ahead_is_named_with_the_deciding_factor() -> None:
    said = text(list(priority_answer(QUEUE[1], QUEUE, 120, 3, tried=False)))
    assert said == [
        "5 job-5  is at place 2 of 4 with 850.",
        "  behind  4 job-4 (ann) by 150: age −800, nice −50; in spite of fair share +700",
        "  made of fair share 800 of 2 000 · age 100 of 1 000 · nice −50",
    ]
    assert text(list(priority_answer(QUEUE[0], QUEUE, 120, 3, tried=False)))[1] == (
        "  first   ahead of 5 job-5 (ann) by 150: age +800, nice +50; in spite of fair share −700"
    )
    assert (
        text(list(priority_answer(QUEUE[3], QUEUE, 120, 3, tried=False)))[1] == "  behind  a job that you may not see"
    )


def test_equal_priorities_are_sorted_by_submission_and_queues_by_tier() -> None:
    first, second = row(1, 1, breakdown(5)), row(2, 2, breakdown(5))
    assert (
        "which has just as much and came earlier"
        in text(list(priority_answer(second, [first, second], 120, 3, tried=False)))[1]
    )
    other = replace(first, partition="urgent")
    assert (
        "whose queue urgent comes first" in text(list(priority_answer(second, [other, second], 120, 3, tried=False)))[1]
    )


@pytest.mark.req("UI-07")
def test_a_job_has_one_row_unless_its_queues_differ() -> None:
    alike, other = row(1, 1, breakdown(5)), row(2, 2, breakdown(5))
    east, west = replace(alike, partition="east"), replace(alike, partition="west")
    hidden = [row(3, 3, None, job=JobId(0)), row(4, 4, None, job=JobId(0))]
    assert [each.partition for each in of_jobs([east, west, other, *hidden])][:2] == ["east, west", other.partition]
    assert len(of_jobs([east, west, other, *hidden])) == 4
    apart = [east, replace(west, breakdown=breakdown(7)), other]
    assert of_jobs(apart) == apart
    north = replace(alike, partition="north")
    mixed = [east, replace(west, breakdown=breakdown(7)), north]
    assert of_jobs(mixed) == mixed, "two queues alike and one not"
    queue = [*of_jobs([east, west]), replace(other, partition="west")]
    assert "which has just as much" in text(list(priority_answer(queue[1], queue, 120, 3, tried=False)))[1]


def test_a_large_panel_explains_every_figure() -> None:
    said = text(list(priority_answer(QUEUE[1], QUEUE, 120, 9, tried=False)))
    assert [" ".join(each.split()) for each in said[2:]] == [
        "fair share 800 = 0.400 × 2 000 the less its share was used",
        "age 100 = 0.100 × 1 000 the longer it waits",
        "nice −50",
    ]


@pytest.mark.req("UI-07")
def test_the_changes_by_trial_weights_are_described() -> None:
    up = replace(QUEUE[1], position=1, position_before=2, total_before=10)
    down = replace(QUEUE[0], position=2, position_before=1)
    assert trial_words([up, down]) == "1 up, 1 down"
    assert trial_words([replace(up, position=2)]) == "the same order"
    assert text(list(priority_answer(up, [up, down], 120, 3, tried=True)))[0] == (
        "5 job-5  would go up by 1, from place 2 to 1 of 2   priority 10 → 850"
    )


def test_the_legend_shows_current_and_previous_weights_where_they_fit() -> None:
    own = replace(WEIGHTS, age=5)
    said = [plain(legend(WEIGHTS, own, (AGE, FAIR), AGE, columns, letters=True)) for columns in (80, 36, 20)]
    assert said == [" a age 5 → 1 000  F fair share 2 000", " a age 5 → 1 000  F fair 2 000", " a age  F fair"]


@pytest.mark.parametrize(
    ("weight", "up", "down"),
    [
        (0, 100, 0),
        (1, 2, 0),
        (100, 200, 50),
        (130, 200, 100),
        (1000, 2000, 500),
        (4_294_967_295, 4_294_967_295, 2_000_000_000),
    ],
)
def test_weights_change_by_fixed_steps(weight: int, up: int, down: int) -> None:
    assert (stepped(weight, 1), stepped(weight, -1)) == (up, down)


def test_a_step_changes_one_factor_of_all() -> None:
    changed = with_step(WEIGHTS, FAIR, 1).on(Weights())
    assert changed == replace(WEIGHTS, fairshare=5000)
    assert with_step(WEIGHTS, TRES, -1).on(Weights()).tres == {"cpu": 5.0, "gres/gpu": 50.0}


@pytest.mark.req("UI-07")
def test_an_empty_ranking_says_what_to_do() -> None:
    def said(priorities: Priorities | None, hidden: int = 0) -> str:
        return "\n".join(text(nothing_to_rank(priorities, hidden, {"new": "n"}, tried=False)))

    some = Priorities(PriorityKind.MULTIFACTOR, WEIGHTS, (QUEUE[0],))
    assert "counting" in said(None)
    assert "cockpit cluster init" in said(replace(some, kind=PriorityKind.BASIC))
    assert "No jobs are queued" in said(replace(some, rows=()))
    assert "No queued job matches." in said(some, hidden=1)
    assert said(some) == ""


@pytest.mark.req("UI-07")
def test_a_difference_of_one_point_is_shown_and_a_move_in_one_direction_too() -> None:
    ahead, behind = row(1, 1, breakdown(6)), row(2, 2, breakdown(5))
    assert "by 1" in text(list(priority_answer(behind, [ahead, behind], 120, 3, tried=False)))[1]
    assert trial_words([replace(ahead, position_before=2)]) == "1 up, 0 down"


@pytest.mark.req("SC-15")
def test_the_factors_of_resources_have_the_names_that_weights_are_given_by() -> None:
    made = breakdown(1, 0, 0, Part(TRES, 1, 90, 90, "gres/gpu"), Part(FactorName.JOB_SIZE, 1, 5, 5))
    factors = factors_of(row(1, 1, made), Context(now=Millis(0)))
    assert list(factors) == ["age", "fairshare", "tres/gres/gpu", "jobsize"]


@pytest.mark.req("UI-07", "TR-05")
def test_hidden_jobs_stay_rows_of_their_own() -> None:
    """They all have the id 0, also where they have the same place in two partitions."""
    hidden = [row(0, 3, None, partition=name) for name in ("gpu", "cpu")]
    assert of_jobs(hidden) == hidden
    own = [row(7, 3, breakdown(250), partition=name) for name in ("gpu", "cpu")]
    assert [each.partition for each in of_jobs([*own, *hidden])] == ["gpu, cpu", "gpu", "cpu"]


@pytest.mark.req("UI-07")
def test_the_key_goes_through_all_figures_and_begins_again() -> None:
    assert [each.next for each in Figures] == [Figures.RAW, Figures.WEIGHT, Figures.CONTRIBUTION]
