"""Admission by quotas that cohorts lend: what is free, who is admitted, who is preempted, and when."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.model.ids import Millis
from cockpit.sched.admission.forecast import AdmissionState, predict_admissions
from cockpit.sched.admission.quotas import COHORT, CohortQuotas, FlavorResource, Quota
from cockpit.sched.admission.workloads import (
    AdmissionQueue,
    AdmissionWorkload,
    Cause,
    FlavorGroup,
    Mode,
    PodSetRequest,
    Preempts,
)

GPU = "nvidia.com/gpu"
H100 = FlavorResource("h100", GPU)
A100 = FlavorResource("a100", GPU)
HOUR = 3_600_000


def a_queue(name: str, flavors: tuple[str, ...] = ("h100",), **rules: Any) -> AdmissionQueue:
    return AdmissionQueue(name, (FlavorGroup((GPU,), flavors),), **rules)


def a_workload(key: str, cards: int, queue: str = "a", priority: int = 0, since: int = 0) -> AdmissionWorkload:
    return AdmissionWorkload(key, queue, priority, Millis(since), (PodSetRequest("main", {GPU: cards}),))


def runs(workload: AdmissionWorkload, cell: FlavorResource = H100, at: int = 0) -> AdmissionWorkload:
    return replace(workload, usage={cell: workload.requests[0].amounts[GPU]}, admitted_at=Millis(at))


def a_state(quotas: CohortQuotas, queues: list[AdmissionQueue], workloads: list[AdmissionWorkload]) -> AdmissionState:
    for each in workloads:
        quotas.change(each.queue, each.usage)
    return AdmissionState(quotas, queues, workloads)


def two_queues(a: Quota, b: Quota, *, cohort: bool = True) -> CohortQuotas:
    parents = {"a": f"{COHORT}all", "b": f"{COHORT}all"} if cohort else {}
    return CohortQuotas({"a": {H100: a}, "b": {H100: b}}, parents)


@pytest.mark.req("KU-04")
@pytest.mark.parametrize(
    ("a", "b", "used_by_b", "free", "most"),
    [
        (Quota(8), Quota(8), 0, 16, 16),
        (Quota(8), Quota(8), 12, 4, 16),
        (Quota(8, borrowing_limit=2), Quota(8), 0, 10, 10),
        (Quota(8), Quota(8, lending_limit=3), 0, 11, 11),
        # What b does not lend it uses first, so it burdens the cohort only with the rest.
        (Quota(8), Quota(8, lending_limit=3), 6, 10, 11),
        (Quota(8, lending_limit=0), Quota(8), 8, 8, 16),
    ],
)
def test_a_cohort_lends_within_its_limits(a: Quota, b: Quota, used_by_b: int, free: int, most: int) -> None:
    quotas = two_queues(a, b)
    quotas.change("b", {H100: used_by_b})
    assert (quotas.available("a", H100), quotas.potential("a", H100)) == (free, most)
    quotas.change("b", {H100: used_by_b}, -1)
    assert quotas.used(f"{COHORT}all", H100) == 0


@pytest.mark.req("KU-04")
def test_cohorts_of_cohorts_lend_through_their_common_ancestor() -> None:
    left, right, top = (f"{COHORT}{name}" for name in ("left", "right", "top"))
    quotas = CohortQuotas(
        {"a": {H100: Quota(4)}, "b": {H100: Quota(8)}, right: {H100: Quota(2, lending_limit=5)}, top: {H100: Quota(1)}},
        {"a": left, "b": right, left: top, right: top},
    )
    # Right has 8 + 2, of which it lends 5.
    assert quotas.potential("a", H100) == 4 + 5 + 1
    quotas.change("b", {H100: 10})
    assert quotas.available("a", H100) == 4 + 1
    assert quotas.height(top) == 2
    assert quotas.borrowing_level("a", H100, 5) == (2, False)


@pytest.mark.req("KU-04")
def test_a_cohort_that_is_its_own_ancestor_lends_nothing() -> None:
    one, two = f"{COHORT}one", f"{COHORT}two"
    quotas = CohortQuotas({"a": {H100: Quota(4)}, "b": {H100: Quota(4)}}, {"a": one, "b": two, one: two, two: one})
    assert quotas.potential("a", H100) == 4


@pytest.mark.req("KU-05")
@pytest.mark.parametrize(
    ("cards", "mode", "cause"),
    [(8, Mode.FIT, None), (16, Mode.FIT, None), (24, Mode.NO_FIT, Cause.NEVER)],
)
def test_what_exceeds_the_most_can_never_fit(cards: int, mode: Mode, cause: Cause | None) -> None:
    state = a_state(two_queues(Quota(8), Quota(8)), [a_queue("a"), a_queue("b")], [])
    verdict = state.judge(a_workload("new", cards))
    assert (verdict.mode, verdict.cause) == (mode, cause)


@pytest.mark.req("KU-05")
def test_a_shortage_says_what_is_asked_free_and_possible() -> None:
    state = a_state(two_queues(Quota(8), Quota(8)), [a_queue("a"), a_queue("b")], [runs(a_workload("old", 12, "b"))])
    verdict = state.judge(a_workload("new", 6))
    assert verdict.cause is Cause.QUOTA
    ((short,),) = [each.shortages for each in verdict.attempts]
    assert (short.asked, short.available, short.potential, short.missing) == (6, 4, 16, 2)


@pytest.mark.req("KU-05")
def test_flavors_are_tried_in_order_and_those_with_other_nodes_are_passed_over() -> None:
    quotas = CohortQuotas({"a": {H100: Quota(8), A100: Quota(8)}}, {})
    queue = a_queue("a", ("h100", "a100"))
    state = a_state(quotas, [queue], [runs(a_workload("old", 8))])
    verdict = state.judge(a_workload("new", 8))
    assert (verdict.mode, verdict.usage) == (Mode.FIT, {A100: 8})
    request = PodSetRequest("main", {GPU: 8}, {"a100": "the taint x"})
    verdict = state.judge(replace(a_workload("new", 8), requests=(request,)))
    assert verdict.cause is Cause.QUOTA
    assert [each.excluded for each in verdict.attempts] == ["", "the taint x"]
    request = PodSetRequest("main", {"cpu": 1})
    assert state.judge(replace(a_workload("new", 8), requests=(request,))).undeclared == "cpu"


@pytest.mark.req("KU-05")
def test_a_queue_takes_its_own_quota_back_from_one_that_borrows() -> None:
    workloads = [
        runs(a_workload("first", 8, "b"), at=1),
        runs(a_workload("second", 4, "b"), at=2),
        runs(a_workload("third", 4, "b"), at=3),
    ]
    queues = [a_queue("a", reclaim=Preempts.ANY), a_queue("b")]
    state = a_state(two_queues(Quota(8), Quota(8)), queues, workloads)
    # The latest admitted goes first, and one is enough.
    verdict = state.judge(a_workload("new", 4))
    assert (verdict.mode, verdict.victims) == (Mode.RECLAIM, ("third",))
    # Beyond its own quota it may take nothing back.
    assert state.judge(a_workload("new", 12)).victims == ()
    state = a_state(two_queues(Quota(8), Quota(8)), [a_queue("a", reclaim=Preempts.LOWER), a_queue("b")], workloads)
    assert state.judge(a_workload("new", 4)).victims == ()
    assert state.judge(a_workload("new", 4, priority=1)).victims == ("third",)


@pytest.mark.req("KU-05")
def test_a_job_preempts_lower_priorities_of_its_queue_and_no_more_than_needed() -> None:
    workloads = [
        runs(a_workload("low", 2, priority=1), at=1),
        runs(a_workload("small", 2, priority=1), at=2),
        runs(a_workload("large", 4, priority=2), at=3),
    ]
    quotas = CohortQuotas({"a": {H100: Quota(8)}}, {})
    state = a_state(quotas, [a_queue("a", within=Preempts.LOWER)], workloads)
    # The two of lowest priority go first; once the large one goes too, they are put back.
    assert state.judge(a_workload("new", 4, priority=3)).victims == ("small", "low")
    assert set(state.judge(a_workload("new", 6, priority=3)).victims) >= {"large"}
    assert state.judge(a_workload("new", 4, priority=1)).victims == ()
    newer = a_state(
        CohortQuotas({"a": {H100: Quota(8)}}, {}),
        [a_queue("a", within=Preempts.LOWER_OR_NEWER)],
        [runs(a_workload("newer", 8, since=5))],
    )
    assert newer.judge(a_workload("new", 8, since=1)).victims == ("newer",)


@pytest.mark.req("KU-05", "SC-12")
def test_a_queue_passes_over_what_does_not_fit_unless_it_is_strict() -> None:
    workloads = [a_workload("large", 6, since=1), a_workload("small", 2, since=2)]
    for strict, expected in ((False, ["small"]), (True, [])):
        quotas = CohortQuotas({"a": {H100: Quota(8)}}, {})
        state = a_state(quotas, [a_queue("a", strict=strict)], [runs(a_workload("old", 4)), *workloads])
        assert state.settle(Millis(0)) == expected


@pytest.mark.req("KU-05", "SC-12")
def test_the_first_of_a_strict_queue_keeps_its_quota_from_those_that_would_borrow_it() -> None:
    workloads = [runs(a_workload("old", 4)), a_workload("large", 8, since=1), a_workload("other", 12, "b", since=2)]
    state = a_state(two_queues(Quota(8), Quota(8)), [a_queue("a", strict=True), a_queue("b")], workloads)
    assert state.settle(Millis(0)) == ["large"]
    workloads[1] = a_workload("large", 17, since=1)
    state = a_state(two_queues(Quota(8), Quota(8)), [a_queue("a", strict=True), a_queue("b")], workloads)
    # It can never fit, so nothing is kept for it.
    assert state.settle(Millis(0)) == ["other"]


@pytest.mark.req("SC-12")
def test_admissions_are_predicted_from_the_ends_of_running_jobs() -> None:
    quotas = CohortQuotas({"a": {H100: Quota(8)}}, {})
    workloads = [
        runs(a_workload("one", 4)),
        runs(a_workload("two", 4)),
        a_workload("first", 8, since=1),
        a_workload("high", 4, priority=1, since=2),
    ]
    state = a_state(quotas, [a_queue("a")], workloads)
    ends = {"one": Millis(HOUR), "two": Millis(2 * HOUR)}
    found = predict_admissions(state, Millis(0), ends, lambda _: HOUR).admissions
    # The higher priority first; the large one after both the other and "two" have ended.
    assert found["high"] == (HOUR, (("one", HOUR),), {"main": ("h100",)})
    assert found["first"].at == 2 * HOUR
    assert set(found["first"].after) == {("two", 2 * HOUR), ("high", 2 * HOUR)}
    assert not state.settle(Millis(0))


@pytest.mark.req("SC-12")
def test_an_end_that_nobody_knows_predicts_nothing() -> None:
    quotas = CohortQuotas({"a": {H100: Quota(8)}}, {})
    state = a_state(quotas, [a_queue("a")], [runs(a_workload("old", 8)), a_workload("new", 1), a_workload("never", 9)])
    assert predict_admissions(state, Millis(0), {"old": None}, lambda _: None).admissions == {}
    found = predict_admissions(state, Millis(0), {"old": Millis(5)}, lambda _: None)
    assert found.admissions.keys() == {"new"}


@pytest.mark.req("KU-04", "SC-12")
@pytest.mark.parametrize("cohort", [True, False])
def test_the_first_of_a_strict_queue_comes_before_jobs_that_were_set_aside(*, cohort: bool) -> None:
    # Kueue gathers the jobs that it set aside for a second, while it looks at the first of a strict queue all the time.
    quotas = two_queues(Quota(4), Quota(0))
    if not cohort:
        quotas = CohortQuotas({"a": {H100: Quota(4)}, "b": {H100: Quota(0)}}, {})
    jobs = [runs(a_workload("old", 1)), a_workload("own", 4, since=1), a_workload("strict", 4, "b", since=2)]
    state = a_state(quotas, [a_queue("a"), a_queue("b", strict=True)], jobs)
    assert state.settle(Millis(0)) == []
    state.end("old")
    assert state.settle(Millis(0)) == (["strict"] if cohort else ["own"])


@pytest.mark.req("KU-04", "SC-12")
def test_a_job_takes_its_next_flavor_if_what_it_would_borrow_is_reserved() -> None:
    quotas = CohortQuotas(
        {"a": {H100: Quota(4)}, "b": {H100: Quota(0), A100: Quota(8)}}, {"a": f"{COHORT}all", "b": f"{COHORT}all"}
    )
    jobs = [runs(a_workload("old", 2)), a_workload("first", 4, since=1), a_workload("new", 2, "b", since=2)]
    state = a_state(quotas, [a_queue("a", strict=True), a_queue("b", ("h100", "a100"))], jobs)
    assert state.settle(Millis(0)) == ["new"]
    assert state.admitted["new"].usage == {A100: 2}


@pytest.mark.req("SC-12")
def test_a_preempted_job_waits_again() -> None:
    quotas = CohortQuotas({"a": {H100: Quota(8)}}, {})
    state = a_state(
        quotas, [a_queue("a", within=Preempts.LOWER)], [runs(a_workload("low", 8)), a_workload("high", 8, priority=1)]
    )
    found, preempted = predict_admissions(state, Millis(0), {"low": Millis(HOUR)}, lambda _: HOUR)
    assert (found["high"].at, found["low"].at, preempted) == (0, HOUR, {"low": 0})
