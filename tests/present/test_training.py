"""What people and programs read of an elastic job's training; what is not known is said, and never shown as 0."""

from __future__ import annotations

from datetime import UTC

import pytest
from msgspec.structs import replace

from cockpit.model.attempt import Attempt, Replica
from cockpit.model.ids import Millis, NodeName
from cockpit.model.job import JobState
from cockpit.model.jobdetail import JobDetail
from cockpit.model.node import Allocation
from cockpit.model.resilience import Elastic
from cockpit.model.steps import (
    Extra,
    Interruption,
    Resumption,
    SizeForecast,
    SizeSpeed,
    SpeedSource,
    Training,
)
from cockpit.present.columns import Context
from cockpit.present.job.page import job_page
from cockpit.present.job.running import running_lines
from cockpit.present.spans import plain
from cockpit.present.tables.job import EXPLAIN_RUNNING, JOB
from cockpit.present.training import growth_lines, training_json, training_lines
from tests.doubles.samples import HOUR, MINUTE, NOW, job, job_row

CONTEXT = Context(now=NOW, zone=UTC)
ENDS = (
    SizeForecast(workers=1, per_second=0.5, source=SpeedSource.ESTIMATED, end_at=Millis(NOW + 9 * HOUR)),
    SizeForecast(workers=2, per_second=1.25, source=SpeedSource.MEASURED, end_at=Millis(NOW + HOUR)),
    SizeForecast(workers=8, per_second=5.0, source=SpeedSource.PROPORTIONAL, end_at=Millis(NOW + 15 * MINUTE)),
)
KNOWN = Training(
    step=120,
    total=1000,
    checkpoint=100,
    speeds=(SizeSpeed(2, 100, 80_000.0),),
    resumptions=(
        Resumption(at=NOW, cause=Interruption.RECLAIMED, workers_version=5, reached=50, resumed=50),
        Resumption(at=NOW, cause=Interruption.PREEMPTED, workers_version=9, reached=120, resumed=100),
    ),
    unknown=1,
    ends=ENDS,
    limit_at=Millis(NOW + 4 * HOUR),
    extra=Extra(card_milli_ms=3_250 * HOUR, cpu_ms=8 * HOUR),
)


def detail(training: Training | None = KNOWN, **row: object) -> JobDetail:
    size = Elastic(workers=2, max_workers=8)
    part = Allocation(0, NodeName("n1"), 4, 1024)
    attempt = Attempt(number=1, spec_index=0, placement=(part,), placed_at=NOW, replicas=(Replica(rank=0),))
    spec = replace(job().spec, nodes=2, elastic=size)
    shown = replace(job(), spec=spec, attempt=attempt, state=JobState.RUNNING, ended_at=None)
    fields = {"nodes": 2, "placed_on": (NodeName("n1"), NodeName("n2")), "workers": (1, 2, 8), **row}
    return JobDetail(row=job_row(7, **fields), job=shown, explanation=None, events=(), training=training)


def lines(training: Training | None = KNOWN, **row: object) -> list[str]:
    return list(training_lines(detail(training, **row), CONTEXT))


@pytest.mark.req("EL-01", "EL-04")
def test_the_page_has_steps_losses_hours_and_likely_ends() -> None:
    assert lines() == [
        "Training: step 120 of 1000, checkpoint at step 100",
        "  20 steps lost in 2 interruptions, not known for 1 more",
        "    12:00  trains on after a reclaim: no steps lost (step 50 reached, resumed from step 50)",
        "    12:00  trains on after a preemption: 20 steps lost (step 120 reached, resumed from step 100)",
        "  3.25 card-hours by best effort, above its minimum of 1 worker",
        "  From now on it would",
        (
            "    with 1 worker           not end before its time limit at 16:00  2.0 s a step, "
            "estimated from the sizes that it has had"
        ),
        "    with 2 workers (now)    end about 13:00 (in 1 h)  1.25 steps/s, measured",
        (
            "    with 8 workers          end about 12:15 (in 15 min)  5.00 steps/s, "
            "assumed proportional: it has had one size"
        ),
    ]
    assert "Training: step 120 of 1000, checkpoint at step 100" in job_page(detail(), CONTEXT)


@pytest.mark.req("EL-01")
def test_a_worker_that_leaves_is_not_one_of_those_that_train_now() -> None:
    assert "    with 1 worker (now) " in "\n".join(lines(leaving=(1, Millis(NOW + MINUTE))))


@pytest.mark.req("EL-01", "EL-04")
@pytest.mark.parametrize(
    ("training", "said"),
    [
        (Training(), ["Training: steps not known: its script calls no cockpit.elastic.step()"]),
        (
            Training(unknown=2),
            [
                "Training: steps not known: its script calls no cockpit.elastic.step()",
                "  steps lost: not known for 2 interruptions",
            ],
        ),
        (Training(step=0), ["Training: step 0"]),
        (
            Training(step=3, limit_at=Millis(NOW + HOUR)),
            ["Training: step 3", "  speed not known yet: it is measured over some steps"],
        ),
        (
            Training(step=40, counted=True),
            [
                (
                    "Training: 40 iterations counted in the log of its first worker; "
                    "steps not known: its script calls no cockpit.elastic.step()"
                )
            ],
        ),
    ],
)
def test_what_is_not_known_is_said(training: Training, said: list[str]) -> None:
    assert lines(training) == said
    assert training_json(detail(training), CONTEXT)["steps_lost"] is None


@pytest.mark.req("EL-01")
def test_without_the_number_of_steps_only_the_time_limit_is_known() -> None:
    ends = tuple([replace(each, end_at=None) for each in ENDS])
    shown = lines(replace(KNOWN, total=None, ends=ends, resumptions=(), unknown=0, extra=Extra()))
    assert shown[0] == "Training: step 120, checkpoint at step 100"
    assert all("end: not known" in each for each in shown[2:5])
    assert shown[-1].endswith("(total_steps); its time limit ends it at 16:00")


@pytest.mark.req("EL-01", "EL-08")
def test_a_job_without_cards_has_cpu_hours_above_its_minimum() -> None:
    assert "  8.00 CPU-hours by best effort, above its minimum of 1 worker" in lines(
        replace(KNOWN, extra=Extra(cpu_ms=8 * HOUR))
    )


@pytest.mark.req("EL-01")
def test_the_panel_has_progress_speed_likely_ends_and_losses_before_the_use_of_memory() -> None:
    shown = detail()
    assert [plain(each).strip() for each in running_lines(shown.row, shown, CONTEXT)][:3] == [
        "step 120 of 1000, checkpoint at step 100, 1.25 steps/s with 2 workers",
        "with 2 workers: end about 13:00 (in 1 h), with 8 workers: end about 12:15 (in 15 min)",
        "20 steps lost in 2 interruptions, not known for 1 more",
    ]
    assert [plain(each) for each in running_lines(shown.row, detail(None), CONTEXT)] == []
    assert [plain(each) for each in running_lines(shown.row, detail(Training()), CONTEXT)] == []


@pytest.mark.req("EL-01", "UI-40")
def test_programs_get_each_figure_and_null_for_what_is_not_known() -> None:
    known = training_json(detail(), CONTEXT)
    assert known is not None
    assert (known["step"], known["total_steps"], known["checkpoint_step"], known["steps_lost"]) == (120, 1000, 100, 20)
    assert [each["steps_lost"] for each in known["interruptions"]] == [0, 20]
    assert known["interruptions_unknown"] == 1
    assert [(each["workers"], each["source"], each["after_time_limit"]) for each in known["ends"]] == [
        (1, "estimated", True),
        (2, "measured", False),
        (8, "proportional", False),
    ]
    assert known["speeds"] == [{"workers": 2, "steps": 100, "steps_per_second": 1.25}]
    assert (known["above_min_card_hours"], known["above_min_cpu_hours"]) == (3.25, 8.0)
    (column,) = [each for each in JOB.columns if each.id == "training"]
    assert list(column.facts([detail(), detail(None)], CONTEXT)) == [known, None]
    assert column.words is not None
    assert column.words(detail(), CONTEXT) == "step 120 of 1000, checkpoint at step 100"


@pytest.mark.req("EL-01", "UI-40")
def test_the_explanation_of_a_running_job_begins_with_its_workers() -> None:
    first, second, *_ = growth_lines(detail(), CONTEXT)
    assert first == "7 job-7  workers 2, may have 1 to 8."
    assert second == "  Training: step 120 of 1000, checkpoint at step 100"
    assert {each.id for each in EXPLAIN_RUNNING.columns} >= {"id", "workers", "no_growth", "training"}


@pytest.mark.req("EL-01")
def test_a_job_that_is_not_elastic_or_not_placed_has_no_such_lines() -> None:
    assert lines(None) == []
    waiting = detail()
    assert list(training_lines(replace(waiting, job=replace(waiting.job, attempt=None)), CONTEXT)) == []
