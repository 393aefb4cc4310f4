"""Resources that jobs held are counted by attempt and divided over intervals; names are hidden from users who may not
see them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.engine.access import Actor
from cockpit.engine.state import ClusterState
from cockpit.engine.views.spending import divided, ended_job, spans, spending, visible_ended_jobs
from cockpit.model.accounting import Span, UsageSum
from cockpit.model.attempt import EndCause, Replica
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job, JobState
from cockpit.model.usage import ReplicaTotals
from tests.doubles.samples import HOUR, NOW, job
from tests.store.samples import ANNA


def ran(began: int, ended: int | None, used: ReplicaTotals | None = None) -> Replica:
    end = None if ended is None else Millis(NOW + ended)
    return Replica(rank=0, started_at=Millis(NOW + began), ended_at=end, used=used)


def twice() -> Job:
    """4 CPUs and half a card: preempted after an hour, done after two more."""
    base = job()
    first = replace(
        base.attempt,
        number=1,
        replicas=(ran(0, HOUR, ReplicaTotals(cpu_ms=HOUR, peak_memory_mib=9, card_percent=30)),),
        ended_at=Millis(NOW + HOUR),
        cause=EndCause.PREEMPTED,
    )
    second = replace(
        base.attempt,
        number=2,
        replicas=(ran(2 * HOUR, 4 * HOUR, ReplicaTotals(cpu_ms=3 * HOUR, peak_memory_mib=7, card_percent=90)),),
        ended_at=None,
    )
    return replace(base, earlier=(first,), attempt=second, account="nlp", qos="high", ended_at=Millis(NOW + 4 * HOUR))


@pytest.mark.req("JT-48", "UI-09")
def test_an_ended_job_counts_with_all_its_attempts() -> None:
    held = list(spans(twice(), NOW))
    assert [(each.attempt, each.from_at - NOW, each.until_at - NOW) for each in held] == [
        (1, 0, HOUR),
        (2, 2 * HOUR, 4 * HOUR),
    ]
    assert {(each.cpus, each.card_milli, each.account, each.qos) for each in held} == {(4, 500, "nlp", "high")}
    ended = ended_job(twice())
    assert (ended.attempts, ended.elapsed_ms, ended.cpu_held_ms, ended.card_milli_ms) == (
        2,
        3 * HOUR,
        12 * HOUR,
        1500 * HOUR,
    )
    assert (ended.cpu_ms, ended.peak_memory_mib, ended.card_percent) == (4 * HOUR, 9, 70)


@pytest.mark.req("JT-48")
def test_unmeasured_figures_remain_unknown() -> None:
    bare = replace(twice(), earlier=(), attempt=replace(twice().attempt, replicas=(ran(0, HOUR),)))
    ended = ended_job(bare)
    assert (ended.cpu_ms, ended.peak_memory_mib, ended.card_percent) == (None, None, None)
    never = replace(bare, attempt=None)
    assert (list(spans(never, NOW)), ended_job(never).elapsed_ms) == ([], 0)


def test_a_running_attempt_counts_up_to_now() -> None:
    running = replace(twice(), earlier=(), state=JobState.RUNNING, ended_at=None)
    running = replace(running, attempt=replace(running.attempt, replicas=(ran(0, None),)))
    (span,) = spans(running, Millis(NOW + 5 * HOUR))
    assert span.until_at - span.from_at == 5 * HOUR


def span(begins: int, ends: int, *, user: str = "ann", milli: int = 1000) -> Span:
    return Span(JobId(1), 1, user, "nlp", "p", "normal", Millis(begins), Millis(ends), 2, milli)


@pytest.mark.req("UI-09")
def test_a_job_over_midnight_counts_on_both_days() -> None:
    found = divided(
        [span(5, 25), span(12, 14, milli=500), span(30, 40), span(0, 3)], [Millis(at) for at in (4, 10, 20)]
    )
    assert found == [
        [UsageSum("ann", "nlp", "p", "normal", 5 * 1000, 5 * 2)],
        [UsageSum("ann", "nlp", "p", "normal", 10 * 1000 + 2 * 500, 10 * 2 + 2 * 2)],
    ]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=6),
    st.lists(st.integers(0, 50), min_size=2, max_size=6),
)
def test_no_time_is_counted_twice_or_lost(lives: list[tuple[int, int]], cuts: list[int]) -> None:
    held = [span(min(life), max(life)) for life in lives]
    edges = [Millis(at) for at in sorted(cuts)]
    counted = sum(each.card_milli_ms for stretch in divided(held, edges) for each in stretch)
    within = (min(each.until_at, edges[-1]) - max(each.from_at, edges[0]) for each in held)
    assert counted == sum(max(0, each) for each in within) * 1000


@pytest.mark.req("UI-09")
def test_names_of_others_are_only_for_administrators() -> None:
    past = [[UsageSum("ann", "nlp", "p", "normal", 5, 1), UsageSum("bob", "nlp", "q", "normal", 7, 1)]]
    state, edges = ClusterState(), [Millis(0), Millis(10)]
    ann = Actor(replace(ANNA, name="ann"), admin=False)
    (shown,) = spending(state, past, edges, ann, NOW).stretches
    assert {(each.user, each.project, each.card_milli_ms) for each in shown} == {("ann", "p", 5), ("", "", 7)}
    (whole,) = spending(state, past, edges, Actor(ANNA, admin=True), NOW).stretches
    assert {each.user for each in whole} == {"ann", "bob"}


@pytest.mark.req("JT-48")
def test_a_requeued_job_has_not_ended_and_jobs_of_others_are_not_shown() -> None:
    ended, state = twice(), ClusterState()
    owner = Actor(ended.submitter, admin=False)
    assert [each.row.id for each in visible_ended_jobs([ended], state, owner)] == [ended.id]
    assert list(visible_ended_jobs([ended], state, Actor(replace(ANNA, uid=4242), admin=False))) == []
    state.jobs[ended.id] = replace(ended, state=JobState.QUEUED, ended_at=None)
    assert list(visible_ended_jobs([ended], state, owner)) == []
