from __future__ import annotations

from datetime import UTC

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.model.attempt import EndCause
from cockpit.model.forecast import CameAhead, Condition, Forecast, NoBound, StartMove
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import JobState
from cockpit.model.jobdetail import JobDetail
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import Held, NeverFits, Resource
from cockpit.model.spec import NO_LIMIT_SECONDS
from cockpit.model.staging import Progress
from cockpit.present.columns import Context
from cockpit.present.job.answer import PanelContext, answer
from cockpit.present.spans import line_width
from tests.doubles.samples import (
    HOUR,
    MINUTE,
    NOW,
    detail,
    failed_row,
    five_jobs,
    job_row,
    outlook,
    queued_row,
    waiting_detail,
)

KEYS = {"shell": "s", "logs": "l", "extend_hold": "+", "end_hold": "-", "hold": "H", "edit": "e", "cancel": "D"}


def around(
    columns: int = 120, lines: int = 7, keys: dict[str, str] = KEYS, forecast: Forecast | None = None
) -> PanelContext:
    """`forecast`: what the list shows of job 4720."""
    known = {row.id: row for row in five_jobs()}
    forecasts = {JobId(4720): forecast} if forecast is not None else {}
    return PanelContext(Context(now=NOW, zone=UTC, forecasts=forecasts), columns, lines, keys, known.get)


def told(row: JobRow, with_detail: JobDetail | None = None, **how: object) -> list[str]:
    lines = answer(row, with_detail, around(**how))
    return ["".join(span.text for span in line).rstrip() for line in lines]


@pytest.mark.req("UI-02")
def test_a_waiting_job_shows_the_blocking_rule_and_its_start_first() -> None:
    forecast = Forecast(likely_at=Millis(NOW + HOUR), latest_at=Millis(NOW + 100 * MINUTE))
    row = queued_row(4720, name="vit-sweep")
    sentence, more, place, ahead, asks, waits, runs = told(row, waiting_detail(), forecast=forecast)
    assert sentence.startswith("4720 vit-sweep  waits for 4 A100 on one node.")
    assert sentence.endswith("starts about 13:00, no later than 13:40")
    assert more == "  n07 has 3 free, n12 has 2 free."
    assert place.startswith("  place 3   priority 17 450   fair share ━━")
    assert ahead == "  ahead of it: 4722 (ann, 4 CPUs), 4718 (-)"
    assert asks == "  asks for 1 node, 4 CPUs, 16G, 4 A100 for 8 h at most"
    assert waits == "  waits since 09:00, for 3 h"
    assert runs == "  runs python train.py"


def test_a_new_job_has_no_reason_yet() -> None:
    lines = told(queued_row(4720, submitted_at=Millis(NOW - 59_000)))
    assert "  waits since 11:59" in lines


def test_more_jobs_ahead_than_are_named_are_counted() -> None:
    explained = waiting_detail().explanation
    assert explained is not None
    many = msgspec.structs.replace(explained, position=9, ahead=tuple(map(JobId, (4720, 4711, 4699, 4715))))
    lines = told(queued_row(4800), msgspec.structs.replace(waiting_detail(), explanation=many))
    assert "4720 (bob, 4 cards), 4711 (ann, 16 cards), 4699 (ann, 4 CPUs) and 5 more" in lines[3]


def test_a_job_that_never_starts_by_itself_shows_the_keys_that_help() -> None:
    held = told(queued_row(1, reason=Held("ann", Millis(NOW - HOUR))))
    assert held[0] == "1 job-1  held by ann since 11:00."
    assert held[1].split() == ["H", "release", "it", "e", "edit", "it", "D", "cancel", "it"]
    never = told(queued_row(1, reason=NeverFits(Resource.CARDS, 9, 8)))
    assert never[:2] == ["1 job-1  asks for 9 cards on one node.", "  the largest has 8."]
    assert never[2].split() == ["e", "ask", "for", "something", "else", "D", "cancel", "it"]


@pytest.mark.req("UI-02")
def test_a_running_job_shows_its_progress() -> None:
    sentence, progress, asks, started, _ = told(job_row(4711, name="llama-sft"))
    assert sentence.startswith("4711 llama-sft  runs on n07.")
    assert sentence.endswith("ends by 18:00")
    assert progress == "  2 h ━━━━━━━╸······················ of 8 h, 6 h left"
    assert asks.startswith("  asks for 1 node, 4 CPUs, 16G, 1 A100")
    assert started == "  started 10:00 after a wait of 1 h"


@pytest.mark.req("UI-02", "KU-03")
def test_a_job_without_a_time_limit_has_no_end() -> None:
    sentence, progress, asks, *_ = told(job_row(4711, name="llama-sft", time_limit_seconds=NO_LIMIT_SECONDS))
    assert "ends by" not in sentence
    assert progress == "  2 h, without a time limit"
    assert asks.endswith(" without a time limit")
    waits = told(queued_row(1, time_limit_seconds=NO_LIMIT_SECONDS))
    assert "at most" not in " ".join(waits)


def test_a_job_that_is_being_ended_shows_it() -> None:
    assert told(job_row(1, ending=EndCause.STOP))[0].startswith("1 job-1  is being stopped.")


@pytest.mark.req("UI-02", "JT-40")
def test_a_failed_job_shows_exit_code_remaining_hold_and_keys() -> None:
    sentence, keys, *tail, ended, output = told(failed_row(4715, name="bert-eval"), detail())
    assert sentence.startswith("4715 bert-eval  ended with exit 3.")
    assert sentence.endswith("held until 15:59, 3:59 left")
    assert keys == "  s open shell   l its logs   + extend hold   - end hold"
    assert tail == ["  │ loading", "  │ RuntimeError: device-side assert"]
    assert (ended, output) == ("  ended 11:59 after 1 h 59 min on n07", "  output /data/out")


def test_a_small_panel_shows_the_very_last_line_third() -> None:
    assert told(failed_row(4715), detail(), lines=3)[2] == "  │ RuntimeError: device-side assert"


def test_unbound_keys_are_not_offered() -> None:
    assert told(failed_row(4715), detail(), keys={"shell": "Z"})[1] == "  Z open shell"


def test_a_finished_job_shows_only_time_and_nodes() -> None:
    done = job_row(1, state=JobState.SUCCEEDED, ended_at=Millis(NOW - MINUTE), exit_code=0, end_cause=EndCause.EXIT)
    assert told(done) == ["1 job-1  succeeded.", "  ended 11:59 after 1 h 59 min on n07", "  output /data/out"]
    # The logs of pods are in no file.
    assert told(replace(done, output="")) == ["1 job-1  succeeded.", "  ended 11:59 after 1 h 59 min on n07"]


def test_the_text_at_the_right_is_dropped_on_a_narrow_screen() -> None:
    narrow = told(queued_row(4720, name="vit-sweep"), waiting_detail(), columns=50, forecast=outlook().forecast)
    assert narrow[0] == "4720 vit-sweep  waits for 4 A100 on one node."
    wide = list(answer(queued_row(4720), waiting_detail(), around(100, forecast=outlook().forecast)))
    assert line_width(wide[0]) == 100


@pytest.mark.req("UI-02", "SC-12")
def test_a_waiting_job_shows_its_start_the_jobs_before_it_and_what_would_start_it_sooner() -> None:
    keys, row = KEYS | {"what_if": "w"}, queued_row(4720, name="vit-sweep")
    foretold = around(140, keys=keys)._replace(outlook=outlook())
    sentence, *rest = ["".join(span.text for span in each).rstrip() for each in answer(row, waiting_detail(), foretold)]
    assert sentence.endswith("starts about 13:00, no later than 14:00")
    assert any(each.startswith("  after job - ends about 12:00 and 4711 (ann") for each in rest)
    assert "  w with 2 cards instead of 4: now   with a limit of 2 h instead of 8 h: in 10 min" in rest


@pytest.mark.req("UI-02", "KU-05")
def test_what_would_start_a_job_of_another_scheduler_is_marked_as_cockpits_plan() -> None:
    keys, row = KEYS | {"what_if": "w"}, queued_row(4720, name="vit-sweep")
    foretold = around(140, keys=keys)._replace(outlook=replace(outlook(), scheduler="Kueue"))
    lines = ["".join(span.text for span in each) for each in answer(row, waiting_detail(), foretold)]
    assert any(each.startswith("  w by cockpit's plan, with 2 cards instead of 4: now") for each in lines)


@pytest.mark.req("UI-02")
def test_where_the_panel_is_narrow_the_start_comes_second() -> None:
    foretold = around(60, keys=KEYS | {"what_if": "w"})._replace(outlook=outlook())
    lines = list(answer(queued_row(4720, name="vit-sweep"), waiting_detail(), foretold))
    second = "".join(span.text for span in lines[1]).rstrip()
    assert second == "  starts about 13:00   w with 2 cards instead of 4: now"
    other = foretold._replace(outlook=msgspec.structs.replace(outlook(), job=JobId(1)))
    assert "starts about" not in "".join(span.text for span in lines[0]) + str(
        list(answer(queued_row(4720), None, other))
    )


@pytest.mark.req("UI-32", "SC-12")
def test_the_panel_shows_the_start_of_the_list_where_its_own_answer_is_older() -> None:
    newer = Forecast(likely_at=Millis(NOW + 2 * HOUR), likely_from=Millis(NOW + HOUR), likely_to=Millis(NOW + 3 * HOUR))
    foretold = around(140, forecast=newer)._replace(outlook=outlook())
    first = next(iter(answer(queued_row(4720, name="vit-sweep"), waiting_detail(), foretold)))
    assert "".join(span.text for span in first).endswith("starts about 14:00, likely 13:00–15:00")


@pytest.mark.req("SC-12")
def test_a_reservation_of_the_plan_is_not_shown_as_a_promise() -> None:
    first, *_ = told(queued_row(4720, name="vit-sweep"), waiting_detail())
    assert "no later than" not in first


@pytest.mark.req("SC-12")
def test_a_moved_or_missing_latest_start_shows_its_cause() -> None:
    moved = StartMove(NOW, Millis(NOW + HOUR), Millis(NOW + 2 * HOUR), (CameAhead(JobId(4718)), CameAhead(JobId(0))))
    forecast = Forecast(likely_at=Millis(NOW + HOUR), latest_at=Millis(NOW + 2 * HOUR), moves=(moved,))
    foretold = around(140, lines=12, forecast=forecast)._replace(outlook=outlook())
    row = queued_row(4720)
    lines = ["".join(span.text for span in each).rstrip() for each in answer(row, waiting_detail(), foretold)]
    why = "job 4718 (carol, 32 cards) came ahead of it; job - came ahead of it"
    assert f"  latest start moved from 13:00 to 14:00 at 12:00: {why}" in lines
    none = Forecast(likely_at=Millis(NOW + HOUR), no_bound=NoBound.PRIORITIES_CHANGE)
    foretold = around(140, lines=12, forecast=none)._replace(outlook=outlook())
    lines = ["".join(span.text for span in each).rstrip() for each in answer(row, waiting_detail(), foretold)]
    assert "  no guaranteed latest start: priorities change while jobs wait" in lines


@pytest.mark.req("UI-02")
@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (Condition(JobId(47), "stage1", JobState.RUNNING, Millis(NOW + HOUR)), "is running, ends by 13:00"),
        (Condition(JobId(47), "stage1", JobState.QUEUED), "is queued"),
        (Condition(JobId(47), "stage1", JobState.ERROR), "has ended: error"),
    ],
)
def test_the_job_of_a_dependency_is_shown_with_its_state(condition: Condition, words: str) -> None:
    foretold = around(140, lines=12)._replace(outlook=msgspec.structs.replace(outlook(), condition=condition))
    lines = [
        "".join(span.text for span in each).rstrip() for each in answer(queued_row(4720), waiting_detail(), foretold)
    ]
    assert any("job 47 stage1 " in each and each.endswith(words) for each in lines), lines


@pytest.mark.req("UI-02")
@pytest.mark.parametrize(("seconds", "gone"), [(59, "just started"), (60, "1 min"), (119, "1 min"), (3600, "1 h")])
def test_the_run_time_of_a_job_is_shown_from_its_first_minute_on(seconds: int, gone: str) -> None:
    shown = told(job_row(7, started_at=Millis(NOW - seconds * 1000)))
    assert [line for line in shown if line.startswith(f"  {gone} ") and " of 8 h, " in line]


@pytest.mark.req("JT-50", "UI-02")
def test_a_job_that_copies_its_files_shows_how_much_of_them_is_there() -> None:
    half = Progress(done=1 << 30, total=4 << 30, rate=1 << 20)
    copies = told(job_row(7, state=JobState.STAGING, staged=half, started_at=None, reason=None))
    assert any(line.startswith("  25% ━") for line in copies)
    unknown = told(job_row(7, state=JobState.STAGING, staged=None, started_at=None, reason=None))
    assert any(line.startswith("  just started ") and line.endswith("8 h left") for line in unknown)


@pytest.mark.req("UI-02")
def test_a_job_in_its_last_minute_and_beyond_has_a_minute_left() -> None:
    for seconds in (8 * 3600 - 30, 8 * 3600 + 30):
        shown = told(job_row(7, started_at=Millis(NOW - seconds * 1000)))
        assert any(line.endswith(" of 8 h, 1 min left") for line in shown)


@pytest.mark.req("UI-02", "UI-14")
@pytest.mark.parametrize("lines", [5, 7, 9])
def test_the_end_of_the_log_leaves_room_for_the_other_lines_of_the_panel(lines: int) -> None:
    long = msgspec.structs.replace(detail(), log_tail="\n".join(map(str, range(30))))
    shown = told(failed_row(4715, name="bert-eval"), long, lines=lines)
    tail = [each for each in shown if each.startswith("  │ ")]
    assert len(tail) == max(1, lines - 4)
    assert tail[-1] == "  │ 29"
    assert len(shown) <= max(5, lines)
