"""What a person reads of an elastic job's size, in a list and on its page."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.attempt import Attempt, Replica
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import JobState
from cockpit.model.jobdetail import GrowthObstacle, JobDetail
from cockpit.model.jobrow import JobRow
from cockpit.model.node import Allocation
from cockpit.model.reasons import BehindHead, LimitReached
from cockpit.model.resilience import Elastic, NoGrowth
from cockpit.model.spec import ExcludedNode, Mode
from cockpit.present.columns import Context
from cockpit.present.job.page import replicas
from cockpit.present.job_values import why
from cockpit.present.spans import plain
from cockpit.present.tables.block_list import block_list, blocked_nodes, lasting_blocks
from cockpit.present.tables.job import JOB
from cockpit.present.tables.jobs import JOBS
from cockpit.present.workers import no_growth, replica_count, workers_fact, workers_now
from tests.doubles.samples import NOW, job, job_row

CONTEXT = Context(now=NOW)


def row(nodes: int, **changes: object) -> JobRow:
    on = tuple(NodeName(f"n{number}") for number in range(nodes))
    return job_row(7, nodes=nodes, placed_on=on, workers=(1, 3, 8), **changes)


@pytest.mark.req("EL-01")
@pytest.mark.parametrize(
    ("shown", "sentence"),
    [
        (row(2), "runs with 2 of 3 workers"),
        (row(3), None),
        (row(8), None),
        (row(2, state=JobState.SUCCEEDED, ended_at=row(2).submitted_at), None),
        (job_row(7), None),
    ],
)
def test_a_list_marks_jobs_with_fewer_workers_than_requested(shown: JobRow, sentence: str | None) -> None:
    assert why(shown, CONTEXT) == sentence


@pytest.mark.req("EL-04")
def test_a_list_shows_until_when_a_job_without_enough_workers_is_suspended() -> None:
    shown = replace(row(0), state=JobState.SUSPENDED, waits_until=Millis(NOW + 600_000), reason=BehindHead(JobId(3)))
    sentence = why(shown, CONTEXT)
    assert sentence is not None
    assert sentence.startswith("suspended until 1 worker can run, at most until ")
    assert sentence.endswith("; nothing passes job 3, which is first and waits")


@pytest.mark.req("EL-04", "UI-32")
def test_a_job_that_is_suspended_below_its_minimum_shows_nothing_that_it_does_not_have() -> None:
    suspended = replace(row(2), placed_on=(), state=JobState.SUSPENDED, waits_until=Millis(NOW + 600_000), cpus=8)
    suspended = replace(suspended, card_milli=4000, memory_mib=2048)
    cells = {each.id: plain(each.drawn(suspended, CONTEXT, 0)) for each in JOBS.screen}
    assert (cells["nodes"], cells["cards"]) == ("0/8", "–")
    columns = {each.id: each for each in JOBS.columns}
    shown = {name: columns[name].derive(suspended, CONTEXT) for name in ("nodes", "cpus", "memory_mib", "cards")}
    assert shown == {"nodes": 0, "cpus": 0, "memory_mib": 0, "cards": 0}
    assert workers_now(suspended) == "0 (1–8)"
    queued = replace(suspended, state=JobState.QUEUED, waits_until=None)
    assert {each.id: plain(each.drawn(queued, CONTEXT, 0)) for each in JOBS.screen}["cards"] == "4"


@pytest.mark.req("EL-01")
def test_a_list_shows_the_current_and_the_maximum_number_of_workers() -> None:
    (nodes,) = [each for each in JOBS.screen if each.id == "nodes"]
    assert plain(nodes.drawn(row(2), CONTEXT, 0)) == "2/8"
    assert plain(nodes.drawn(job_row(7, nodes=2), CONTEXT, 0)) == "2"
    (workers,) = [each for each in JOBS.columns if each.id == "workers"]
    assert (workers_now(row(2)), workers_now(job_row(7))) == ("2 (1–8)", "–")
    assert workers.record_json is not None
    assert workers.record_json(row(2).workers) == {"min_workers": 1, "workers": 3, "max_workers": 8}


@pytest.mark.req("EL-01")
def test_the_job_details_explain_why_there_are_no_more_workers() -> None:
    sized = replace(job(), spec=replace(job().spec, nodes=3, elastic=Elastic(workers=3, max_workers=8)))
    detail = JobDetail(row=row(2), job=sized, explanation=None, events=(), growth=NoGrowth.RESERVED)
    assert workers_fact(detail) == "2, asked for 3, may have 1 to 8; free resources are reserved for jobs that wait"
    assert workers_fact(replace(detail, row=row(3), growth=None)) == "3, may have 1 to 8"
    assert (replica_count(sized), replica_count(job())) == ("3 workers", "1 node")


@pytest.mark.req("EL-01", "UI-40")
@pytest.mark.parametrize(
    ("reason", "obstacle", "words"),
    [
        (NoGrowth.NO_FREE_NODE, GrowthObstacle(held_by=(JobId(12),)), "(held by job 12)"),
        (
            NoGrowth.NO_FREE_NODE,
            GrowthObstacle(held_by=tuple(map(JobId, (12, 0, 14, 15, 16)))),
            "(held by jobs 12, 14 and 15 and 2 more)",
        ),
        (NoGrowth.NO_FREE_NODE, GrowthObstacle(held_by=(JobId(0),)), "(held by 1 job of other users)"),
        (
            NoGrowth.NO_FREE_NODE,
            GrowthObstacle(too_dear=(NodeName("n3"),), blocked=(NodeName("n4"), NodeName("n5"))),
            "(n3 costs more than its max_price of 0.35; n4 and n5 are on its block list)",
        ),
        (NoGrowth.RESERVED, GrowthObstacle(reserved_for=(JobId(9),)), "(for job 9)"),
        (
            NoGrowth.LIMIT_REACHED,
            GrowthObstacle(limit=LimitReached("account nlp", "GrpTRES", "cpu", 640, 630, 32)),
            "(limit GrpTRES=cpu of account nlp is 640; 630 in use, 32 asked)",
        ),
        (NoGrowth.BEING_EVICTED, GrowthObstacle(held_by=(JobId(12),)), ""),
    ],
)
def test_why_a_job_does_not_grow_names_what_is_behind_it(
    reason: NoGrowth, obstacle: GrowthObstacle, words: str
) -> None:
    size = Elastic(workers=3, max_workers=8, spot=True, max_price_milli=350)
    sized = replace(job(), spec=replace(job().spec, nodes=3, elastic=size))
    plain_words = JobDetail(row=row(2), job=sized, explanation=None, events=(), growth=reason)
    detail = replace(plain_words, obstacle=obstacle)
    assert no_growth(detail) == f"{no_growth(plain_words)} {words}".strip()
    assert workers_fact(detail) == f"2, asked for 3, may have 1 to 8; {no_growth(detail)}"
    (column,) = [each for each in JOB.columns if each.id == "no_growth"]
    assert list(column.facts([detail], CONTEXT)) == [no_growth(detail)]


@pytest.mark.req("EL-01")
@pytest.mark.parametrize("reason", NoGrowth)
def test_every_reason_not_to_grow_has_its_text(reason: NoGrowth) -> None:
    sized = replace(job(), spec=replace(job().spec, nodes=3, elastic=Elastic(workers=3, max_workers=8)))
    detail = JobDetail(row=row(2), job=sized, explanation=None, events=(), growth=reason)
    assert workers_fact(detail).startswith("2, asked for 3, may have 1 to 8; ")


@pytest.mark.req("EL-01")
def test_workers_that_leave_are_counted_and_a_job_that_shrinks_has_not_its_maximum() -> None:
    sized = replace(job(), spec=replace(job().spec, nodes=3, elastic=Elastic(workers=3, max_workers=3)))
    shrinking = row(3, leaving=(1, Millis(NOW + 60_000)))
    detail = JobDetail(row=shrinking, job=sized, explanation=None, events=(), growth=NoGrowth.BEING_EVICTED)
    assert workers_fact(detail) == "3, of which 1 leaves, may have 1 to 3; it is being evicted or shrunk"
    more = replace(detail, row=row(3, leaving=(2, Millis(NOW + 60_000))), growth=None)
    assert workers_fact(more) == "3, of which 2 leave, may have 1 to 3"


@pytest.mark.req("EL-05", "EL-10")
def test_the_block_list_has_the_nodes_where_a_check_failed_until_the_job_may_use_them_again() -> None:
    excluded = ExcludedNode(node=NodeName("n9"), because="its driver does not answer", until=Millis(NOW + 600_000))
    checked = replace(job(), spec=replace(job().spec, excluded=(excluded,)), state=JobState.RUNNING, ended_at=None)
    (listed,) = block_list(checked)
    assert (listed.node, listed.replica, listed.until) == ("n9", None, NOW + 600_000)
    assert listed.because == "its check failed there: its driver does not answer"
    assert lasting_blocks(checked) == [], "no user has to take it off"
    assert block_list(replace(checked, state=JobState.ERROR, ended_at=NOW)) == []


@pytest.mark.req("JT-26", "EL-05")
def test_the_job_details_name_the_launcher_and_why_a_worker_was_excluded() -> None:
    spec = replace(job().spec, nodes=1, mode=Mode.HOROVOD, elastic=Elastic(workers=1, max_workers=2))
    part = Allocation(1, NodeName("n1"), 4, 1024)
    left = Replica(rank=2, left_at=NOW, had=replace(part, rank=2), blocked="it has not answered for 600 s")
    attempt = Attempt(
        number=1,
        spec_index=0,
        placement=(part,),
        placed_at=NOW,
        replicas=(Replica(rank=0), Replica(rank=1), left),
        launcher=replace(part, rank=0),
    )
    detail = JobDetail(
        row=row(1), job=replace(job(), spec=spec, attempt=attempt, state=JobState.RUNNING), explanation=None, events=()
    )
    assert list(blocked_nodes(detail, CONTEXT)) == [
        "Block list: no further worker is placed on",
        "  n1  since 12:00: it has not answered for 600 s",
        "  unblock       cockpit unblock 7 n1",
    ]
    lifted = replace(attempt, replicas=(*attempt.replicas[:2], replace(left, unblocked_at=NOW)))
    off = replace(detail, job=replace(detail.job, attempt=lifted))
    assert list(blocked_nodes(off, CONTEXT)) == []
    assert list(replicas(off, CONTEXT))[3].endswith(", its node was on the block list: it has not answered for 600 s")
    lines = list(replicas(detail, CONTEXT))
    assert lines[1:3] == [
        "  0  launcher · n1 · 0/1 ready, 0 restarts",
        "  1  worker 0 · n1 · 0/1 ready, 0 restarts",
    ]
    assert lines[3].endswith(", its node is on the block list: it has not answered for 600 s")
