from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.backends.slurm.backend import CAPABILITIES as SLURM
from cockpit.headless.exitcodes import ExitCode
from cockpit.model.capabilities import EMBEDDED
from cockpit.model.forecast import Forecast
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import JobState
from cockpit.model.reasons import Explanation, Held, NotEvaluated, Waited
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.present.columns import Context
from cockpit.present.job.answer import PanelContext
from cockpit.present.job.page import head
from cockpit.present.job.tabs import head_line
from cockpit.present.spans import plain
from tests.doubles.samples import HOUR, NOW, WAITS, detail, outlook
from tests.headless.conftest import Desk
from tests.present.test_training import detail as elastic_detail


@pytest.mark.req("SC-12", "SC-13")
def test_an_explanation_has_rule_start_awaited_jobs_jobs_ahead_and_what_ifs(desk: Desk) -> None:
    head, why, after, ahead, *what_ifs = desk("explain", "4720").lines
    assert head.startswith("4720 vit-sweep  queued behind 2, starts about ")
    assert ", no later than " in head
    assert why.startswith("  Waits for ")
    assert after.startswith("  after job - ends about ")
    assert " and 4711 (ann" in after
    assert "\x1b" not in after
    assert ahead == "  ahead 4718 (carol, 32 cards) and 1 more"
    assert what_ifs[0] == "  with 2 cards instead of 4: now"
    assert what_ifs[1].startswith("  with a limit of 2 h instead of 8 h: in ")


@pytest.mark.req("SC-13")
def test_programs_get_the_reason_the_times_and_each_what_if(desk: Desk) -> None:
    (row,) = json.loads(desk("explain", "4720", "-o", "json").out)["rows"]
    assert (row["id"], row["position"], row["starts_now"]) == (4720, 3, "no")
    assert row["reason"]["type"] == "not_enough_free"
    assert row["likely_at"] < row["latest_at"]
    assert [each["job"] for each in row["after"]] == [None, 4711]
    assert row["ahead"][0]["card_milli"] == 32_000
    assert [(each["change"], each["after"], each["starts_now"]) for each in row["what_ifs"]] == [
        ("cards", "2", True),
        ("limit", "7200", False),
    ]


@pytest.mark.req("SC-13")
def test_a_job_that_cannot_start_has_no_position_in_the_queue(desk: Desk) -> None:
    held = Explanation(JobId(4720), Held("ann", None), 1, ())
    desk.backend.outlooks[4720] = replace(outlook(), position=1, explanation=held, forecast=Forecast())
    assert desk("explain", "4720").lines[0] == "4720 vit-sweep  no estimate of when it starts."
    assert json.loads(desk("explain", "4720", "-o", "json").out)["rows"][0]["position"] is None
    shown = replace(detail(), explanation=held)
    assert "Place" not in "\n".join(head(shown, Context(now=NOW)))
    assert "place" not in plain(head_line(shown, PanelContext(Context(now=NOW), 80, 24, {}, lambda _: None)))
    queued = replace(shown, explanation=replace(held, reason=NotEvaluated()))
    assert "Place 1 in the queue." in head(queued, Context(now=NOW))


@pytest.mark.req("JT-32")
def test_a_file_is_predicted_and_not_submitted(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("vit")
    now = Forecast(now=True, likely_at=NOW, latest_at=NOW)
    desk.backend.outlooks[4720] = replace(outlook(), job=JobId(0), position=1, explanation=None, forecast=now)
    done = desk("predict", str(file))
    assert (done.code, done.lines[0]) == (0, "vit-sweep  starts now.")
    assert [call[0] for call in desk.backend.asked] == ["predict"]
    assert json.loads(desk("predict", str(file), "-o", "json").out)["rows"][0]["id"] is None


@pytest.mark.req("JT-32")
def test_an_invalid_file_is_refused_with_the_position_of_the_error(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("vit")
    desk.backend.refusal = Refusal(RefusalKind.INVALID, "nodes: too many")
    done = desk("predict", str(file))
    assert done.code != 0
    assert str(file) in done.err
    assert "nodes: too many" in done.err


@pytest.mark.req("SC-12")
def test_an_unknown_start_is_reported_as_unknown(desk: Desk) -> None:
    desk.backend.outlooks[4720] = replace(outlook(), forecast=Forecast(), what_ifs=())
    assert "no estimate of when it starts." in desk("explain", "4720").lines[0]


@pytest.mark.req("EL-01", "UI-40")
def test_of_a_running_elastic_job_it_is_explained_what_more_workers_would_give(desk: Desk) -> None:
    desk.backend.details[JobId(7)] = elastic_detail()
    done = desk("explain", "7")
    assert (done.code, done.lines[0]) == (0, "7 job-7  workers 2, may have 1 to 8.")
    assert done.lines[1] == "  Training: step 120 of 1000, checkpoint at step 100"
    assert any(each.startswith("      with 8 workers ") for each in done.lines)
    (row,) = json.loads(desk("explain", "7", "-o", "json").out)["rows"]
    assert (row["id"], row["training"]["step"], row["training"]["ends"][-1]["workers"]) == (7, 120, 8)
    assert "8" in desk("explain", "7", "--columns", "id,workers").out.decode()


@pytest.mark.req("EL-01", "SC-12")
def test_waiting_and_running_jobs_are_explained_together_in_words_and_apart_as_data(desk: Desk) -> None:
    desk.backend.details[JobId(7)] = elastic_detail()
    both = desk("explain", "4720", "7")
    assert both.lines[0].startswith("4720 vit-sweep  queued behind 2")
    assert "7 job-7  workers 2, may have 1 to 8." in both.lines
    refused = desk("explain", "4720", "7", "-o", "json")
    assert refused.code != 0
    assert "name them in two commands" in refused.err


@pytest.mark.req("SC-12")
def test_a_job_that_neither_waits_nor_trains_has_nothing_to_explain(desk: Desk) -> None:
    assert "job 4715 does not wait" in desk("explain", "4715").err
    ended = elastic_detail()
    desk.backend.details[JobId(7)] = replace(ended, row=replace(ended.row, state=JobState.SUCCEEDED))
    assert "job 7 does not wait" in desk("explain", "7").err


@pytest.mark.req("JT-32")
def test_a_prediction_is_of_all_jobs_of_the_file(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("vit")
    for option in ("--filter", "--sort"):
        assert desk("predict", str(tmp_path / "job.yaml"), option, "id").code == ExitCode.USAGE
        assert desk("explain", "4720", option, "id").code == ExitCode.USAGE


@pytest.mark.req("JT-32", "SL-20")
@pytest.mark.parametrize(("options", "says"), [("", True), ("--mem=4G", False), ("--mem-per-cpu=1G", False)])
def test_a_prediction_on_slurm_says_of_a_script_without_memory_what_it_gets(
    reading: Desk, options: str, says: bool
) -> None:
    reading.backend.capabilities = SLURM
    script = f"#!/bin/bash\n#SBATCH -J x -D /o {options}\ntrue\n"
    note = "stdin: names no memory, so it gets the cluster's default"
    assert (note in reading("predict", "-", stdin=script.encode()).err) is says
    assert note not in reading("predict", "-", stdin=b"{name: a, command: b, output: /o}").err
    reading.backend.capabilities = EMBEDDED
    assert note not in reading("predict", "-", stdin=script.encode()).err


@pytest.mark.req("UI-15")
def test_a_past_wait_is_reported_as_text_and_for_programs(desk: Desk) -> None:
    since = Millis(NOW - 3 * HOUR)
    known = detail()
    job = replace(known.job, submitted_at=since, attempt=replace(known.job.attempt, placed_at=Millis(NOW - HOUR)))
    waited = (Waited(since, Held("ann", None)), Waited(Millis(NOW - 2 * HOUR), WAITS, (JobId(4711),)))
    desk.backend.details[4715] = replace(known, job=job, waited=waited, events=())
    done = desk("explain", "--past", "4715")
    assert done.lines[:2] == ["4715 bert-eval · bob", "  waited 2 h"]
    assert any(each.startswith("  H held ") for each in done.lines)
    assert "  ahead 4711 (ann, 16 cards)" in done.lines
    (row,) = json.loads(desk("explain", "--past", "4715", "-o", "json").out)["rows"]
    assert (row["waited_seconds"], row["held_seconds"], row["other_jobs_seconds"]) == (7200, 3600, 3600)
    assert [(each["cause"], each["seconds"]) for each in row["parts"]] == [("held", 3600), ("jobs", 3600)]
    assert row["parts"][1]["reason"]["type"] == "not_enough_free"
    assert row["ahead"] == [4711]
    assert desk("explain", "--past", "4716").code == ExitCode.NOT_FOUND


@pytest.mark.req("UI-15")
def test_a_job_that_started_at_once_did_not_wait(desk: Desk) -> None:
    known = detail()
    at_once = replace(known.job, attempt=replace(known.job.attempt, placed_at=known.job.submitted_at))
    desk.backend.details[4715] = replace(known, job=at_once, events=())
    assert desk("explain", "--past", "4715").lines[1] == "  It did not wait."
