from __future__ import annotations

from datetime import UTC

import pytest

from cockpit.model.attempt import EndCause
from cockpit.model.forecast import CameAhead, Forecast, StartMove
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import ArrayTask, JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import Held
from cockpit.model.spec import NO_LIMIT_SECONDS
from cockpit.present.columns import GAP, Context
from cockpit.present.folding import folded
from cockpit.present.spans import Line, Span, fitted, line_width
from cockpit.present.states import GLYPHS
from cockpit.present.tables.jobs import JOBS, OPTIONAL, coarse, laid_out_jobs
from tests.doubles.samples import HOUR, NOW, failed_row, five_jobs, job_row, queued_row

CONTEXT = Context(now=NOW, zone=UTC)

ONE_CLUSTER = frozenset({"clusters"})
"""The column that is not shown where all jobs are of one cluster."""
SOMETIMES = OPTIONAL - ONE_CLUSTER - {"card_milli"}


def ids(total: int) -> list[str]:
    return [column.id for column, _ in laid_out_jobs(total, without=ONE_CLUSTER)]


def cell(name: str, row: JobRow, context: Context = CONTEXT) -> Line:
    return next(column for column in JOBS.screen if column.id == name).drawn(row, context, 0)


def text(name: str, row: JobRow, context: Context = CONTEXT) -> str:
    return "".join(span.text for span in cell(name, row, context)).rstrip()


@pytest.mark.req("UI-24")
def test_eighty_columns_show_the_most_important_cells() -> None:
    assert ids(78) == ["name", "state", "cards", "started_at", "why"]


@pytest.mark.req("UI-01", "UI-24")
def test_wider_screens_show_more_columns_by_importance() -> None:
    everything = [column.id for column in JOBS.screen if column.id != "clusters"]
    assert ids(118) == [each for each in everything if each not in {"partitions", "priority", "nodes", "placed_on"}]
    assert ids(198) == everything


@pytest.mark.parametrize("total", [*range(20, 240, 7), 78, 118, 198])
def test_the_columns_fill_the_width(total: int) -> None:
    laid = laid_out_jobs(total, without=ONE_CLUSTER)
    used = sum(width for _, width in laid) + GAP * (len(laid) - 1)
    assert used == total or laid[-1][1] == 1


@pytest.mark.parametrize("total", [78, 118, 198])
def test_sentences_grow_more_than_names(total: int) -> None:
    widths = {column.id: width for column, width in laid_out_jobs(total, without=SOMETIMES | ONE_CLUSTER)}
    assert widths["why"] >= 28
    assert widths["name"] <= 30
    assert widths.get("user", 8) <= 12


@pytest.mark.req("UI-01")
@pytest.mark.parametrize(
    ("total", "shown"), [(78, set()), (118, set()), (130, {"partitions"}), (138, SOMETIMES), (198, SOMETIMES)]
)
def test_queue_and_priority_leave_space_for_the_reason(total: int, shown: set[str]) -> None:
    widths = {column.id: width for column, width in laid_out_jobs(total, without=ONE_CLUSTER)}
    assert widths.keys() & SOMETIMES == shown
    assert widths["why"] >= 27


@pytest.mark.req("UI-13")
def test_reasons_take_the_width_of_columns_without_values() -> None:
    nothing = OPTIONAL - {"card_milli"}
    full, without = ({c.id: width for c, width in laid_out_jobs(78, without=each)} for each in (nothing, OPTIONAL))
    assert "cards" in full
    assert "cards" not in without
    assert without["why"] > full["why"]


def test_ids_are_as_wide_as_the_largest() -> None:
    assert {laid_out_jobs(118, 7)[0][1], laid_out_jobs(118)[0][1]} == {7, 4}


@pytest.mark.req("UI-24")
@pytest.mark.parametrize("total", [78, 118, 198])
def test_every_row_lines_up_whatever_its_name(total: int) -> None:
    for row in [*five_jobs(), job_row(1, name="👩‍💻 训练 ﷽"), job_row(2, user="ユーザー")]:
        for column, width in laid_out_jobs(total, without=ONE_CLUSTER):
            assert line_width(fitted(column.drawn(row, CONTEXT, width), width, right=column.leans_right)) == width


def test_every_state_fits_its_column_with_word_and_shape() -> None:
    width = next(column.screen.width for column in JOBS.screen if column.id == "state")
    for state in JobState:
        kept = Millis(NOW + HOUR) if state in {JobState.ERROR, JobState.EXPIRED} else None
        shown = text("state", job_row(1, state=state, held_until=kept))
        assert len(shown) <= width
        assert shown.startswith(f"{GLYPHS[state]} {state}")


def test_an_ending_job_is_shown_as_ending() -> None:
    assert text("state", job_row(1, ending=EndCause.STOP)) == "● ending"


@pytest.mark.req("UI-01")
def test_time_limit_and_bar_are_below_their_titles() -> None:
    title = next(column.heading for column in JOBS.screen if column.id == "elapsed_seconds")
    running = text("elapsed_seconds", job_row(1))
    assert running == " 2:00 ━···· /  8:00"
    endless = text("elapsed_seconds", job_row(1, time_limit_seconds=NO_LIMIT_SECONDS))
    assert endless == " 2:00       /     –"
    waiting = text("elapsed_seconds", queued_row(1))
    ended = text("elapsed_seconds", failed_row(1))
    assert {len(each) for each in (title, running, endless, waiting, ended)} == {19}
    assert {each.index("/") for each in (title, running, endless, waiting, ended)} == {title.index("/")}


@pytest.mark.req("UI-01", "UI-13")
def test_why_is_a_short_clause() -> None:
    assert cell("why", queued_row(1)) == (Span("needs 4 A100 on one node", "text"),)
    assert cell("why", queued_row(1, reason=Held("ann", Millis(NOW)))) == (Span("held by ann", "held"),)
    retried = queued_row(1, retries=(1, 3))
    assert cell("why", retried)[0].text == "needs 4 A100 on one node; retry 1 of 3"
    killed = failed_row(1, held_until=None, exit_code=137, oom=True)
    assert cell("why", killed) == (Span("exit 137: out of memory", "muted"),)
    lost = failed_row(1, held_until=None, end_cause=EndCause.LOST, lost="its shim left no exit status; see a, b, c")
    assert cell("why", lost) == (Span("its container was lost", "muted"),)


def test_a_held_container_shows_the_remaining_time() -> None:
    assert text("why", failed_row(1)) == "exit 3 · held 3:59"


@pytest.mark.req("UI-01", "SC-12")
def test_a_start_that_is_predicted_is_marked_and_is_the_one_that_the_panel_shows() -> None:
    likely = Context(now=NOW, zone=UTC, forecasts={JobId(1): Forecast(likely_at=Millis(NOW + HOUR))})
    reserved = Millis(NOW + 2 * HOUR)
    assert text("started_at", queued_row(1, starts_by=reserved), likely) == "~13:00"
    assert text("started_at", queued_row(2, starts_by=reserved), likely) == "–"
    assert text("started_at", job_row(1, started_at=NOW), likely) == "12:00"


@pytest.mark.req("SC-12")
@pytest.mark.parametrize(("after", "shown"), [(HOUR, "~13:00-"), (3 * HOUR, "~13:00+"), (None, "~13:00+")])
def test_a_start_that_has_moved_is_marked(after: int | None, shown: str) -> None:
    moved = None if after is None else Millis(NOW + after)
    move = StartMove(NOW, Millis(NOW + 2 * HOUR), moved, (CameAhead(JobId(9)),))
    forecast = Forecast(likely_at=Millis(NOW + HOUR), moves=(move,))
    assert text("started_at", queued_row(1), Context(now=NOW, zone=UTC, forecasts={JobId(1): forecast})) == shown
    if moved is not None:
        forecast = Forecast(likely_at=Millis(NOW + HOUR), likely_moves=(move,))
        assert text("started_at", queued_row(1), Context(now=NOW, zone=UTC, forecasts={JobId(1): forecast})) == shown


@pytest.mark.req("UI-01", "SC-12")
def test_the_row_of_an_array_shows_the_start_of_its_representative_task() -> None:
    tasks = [job_row(1, array=ArrayTask(JobId(1), 0, count=2)), queued_row(2, array=ArrayTask(JobId(1), 1, count=2))]
    forecasts = {JobId(2): Forecast(likely_at=Millis(NOW + HOUR))}
    assert text("started_at", folded(tasks), Context(now=NOW, zone=UTC, forecasts=forecasts)) == "~13:00"


@pytest.mark.parametrize(
    ("started", "shown"), [(NOW - 2 * HOUR, "10:00"), (NOW - 48 * HOUR, "10-03"), (NOW - 366 * 24 * HOUR, "2025")]
)
def test_starts_take_five_columns_at_most(started: int, shown: str) -> None:
    assert text("started_at", job_row(1, started_at=Millis(started))) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(42, "42s"), (12 * 60, "12m"), (3 * 3600 + 720, "3:12"), (51 * 3600, "2d 3h")]
)
def test_times_are_coarse(seconds: int, shown: str) -> None:
    assert coarse(seconds) == shown


@pytest.mark.req("UI-01")
def test_a_folded_array_counts_its_tasks_and_their_states() -> None:
    tasks = [job_row(10, array=ArrayTask(JobId(10), 0, 2), partitions=("gpu", "cpu"))]
    tasks += [queued_row(10 + each, array=ArrayTask(JobId(10), each, 2), priority=17_450) for each in (1, 2)]
    row = folded(tasks)
    assert text("id", row) == "10_[0-2%2]"
    assert text("name", row) == "job-11 [3]"
    assert text("state", row).split() == ["◌", "2", "●", "1"]
    assert (text("partitions", tasks[0]), text("priority", row)) == ("gpu,cpu", "17 450")
    assert (text("partitions", row), text("priority", tasks[0])) == ("–", "–")


@pytest.mark.req("UI-10")
def test_with_several_clusters_the_cluster_is_shown_and_the_reason_keeps_its_width() -> None:
    assert [column.id for column, _ in laid_out_jobs(78)] == ["name", "clusters", "state", "cards", "started_at", "why"]
    widths = {column.id: width for column, width in laid_out_jobs(118)}
    assert "elapsed_seconds" not in widths
    assert widths["why"] >= 27
    assert "elapsed_seconds" in {column.id for column, _ in laid_out_jobs(140)}
