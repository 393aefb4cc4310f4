"""Changes that Slurm would refuse are refused before, with a sentence that says why."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.backends.slurm import preflight
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.errors import RequestRefused
from cockpit.model.accounts import Accounts, Association, Qos
from cockpit.model.asking import WantedLimit
from cockpit.model.directives import SendSignal, UpdateJob
from cockpit.model.ids import Millis
from cockpit.model.job import Job
from cockpit.model.refusal import RefusalKind
from cockpit.model.spec import PriorityWord
from cockpit.protocol.messages import EditArgs, JobArgs, SetPriorityArgs, SetTimeLimitArgs
from tests.backends.slurm.test_values import a_record

pytestmark = pytest.mark.req("SL-20")
RUNS = {"State": "RUNNING", "NodeList": "n1", "StartTime": "2026-11-21T08:00:00", "TimeLimit": "1:00:00"}


def a_job(state: str = "PENDING", **fields: str) -> Job:
    """Job 7 of ann."""
    begun = RUNS | {"State": state} if state != "PENDING" else {}
    ended = {"EndTime": "2026-11-21T08:30:00"} if state in {"COMPLETED", "FAILED"} else {}
    return Listed(a_record(**{"JobID": "7", "UserName": "ann", "State": state, **begun, **ended, **fields})).job


KEPT = {"Comment": "cockpit:held rc=3 until=1795248117"}
HELD = {"Reason": "JobHeldUser"}


@pytest.mark.parametrize(
    ("op", "state", "fields", "sentence"),
    [
        ("cancel", "COMPLETED", {}, "Job 7 has ended: it is succeeded."),
        ("end_hold", "RUNNING", {}, "Job 7 has no held container: it is running."),
        ("extend_hold", "RUNNING", {}, "Job 7 has no held container: it is running."),
        ("hold", "PENDING", HELD, "Job 7 is held by ann already."),
        ("hold", "RUNNING", {}, "Job 7 is running; only a queued job can be held."),
        ("release", "PENDING", {}, "Job 7 is not held."),
        ("release", "RUNNING", {}, "Job 7 is not held."),
        ("suspend", "PENDING", {}, "Job 7 has not started."),
        ("requeue", "PENDING", {}, "Job 7 has not started."),
        ("resume", "RUNNING", {}, "Job 7 is not suspended but running."),
        ("edit", "RUNNING", {}, "Job 7 has started: it cannot be edited."),
    ],
)
def test_a_change_that_the_state_of_a_job_forbids_is_refused(
    op: str, state: str, fields: dict[str, str], sentence: str
) -> None:
    with pytest.raises(RequestRefused) as caught:
        preflight.judge(op, a_job(state, **fields))
    assert (caught.value.refusal.kind, caught.value.refusal.message) == (RefusalKind.CONFLICT, sentence)


@pytest.mark.parametrize(
    ("op", "state", "fields"),
    [
        ("requeue", "COMPLETED", {}),
        ("cancel", "RUNNING", {}),
        ("cancel", "RUNNING", KEPT),
        ("end_hold", "RUNNING", KEPT),
        ("extend_hold", "RUNNING", KEPT),
        ("hold", "PENDING", {}),
        ("release", "PENDING", HELD),
        ("suspend", "RUNNING", {}),
        ("requeue", "RUNNING", {}),
        ("resume", "SUSPENDED", {}),
        ("edit", "PENDING", {}),
        ("cancel", "PENDING", {}),
    ],
)
def test_a_change_that_the_state_of_a_job_allows_is_not_refused(op: str, state: str, fields: dict[str, str]) -> None:
    preflight.judge(op, a_job(state, **fields))
    assert preflight.wrong_state(op, a_job(state, **fields)) == ""


def refusal(op: str, args: object, job: Job, asker: str = "ann") -> str:
    """Return why a user who is no administrator is refused; empty: the user is not."""
    try:
        preflight.judge_owner(op, args, job, asker)
    except RequestRefused as refused:
        return refused.refusal.message if refused.refusal.kind is RefusalKind.DENIED else "another kind of refusal"
    return ""


def test_only_the_owner_changes_a_job() -> None:
    assert refusal("cancel", JobArgs(7), a_job(), "bob") == "Job 7 is ann's, not yours."
    assert refusal("cancel", JobArgs(7), a_job()) == ""


@pytest.mark.parametrize(
    ("limit", "state", "allowed"),
    [
        (WantedLimit(3600), "RUNNING", True),
        (WantedLimit(3601), "RUNNING", False),
        (WantedLimit(-60, beside=True), "RUNNING", True),
        (WantedLimit(60, beside=True), "RUNNING", False),
        (WantedLimit(3601), "PENDING", True),
    ],
)
def test_owners_only_lower_the_time_limit_of_a_running_job(limit: WantedLimit, state: str, allowed: bool) -> None:
    said = refusal("set_time_limit", SetTimeLimitArgs(7, limit), a_job(state, TimeLimit="1:00:00"))
    assert said.startswith("Job 7 runs, and Slurm lets only its administrators raise") is not allowed


def test_what_only_administrators_do_is_refused_to_owners() -> None:
    assert refusal("set_priority", SetPriorityArgs(7, 9), a_job()).startswith("Only administrators")
    assert refusal("set_priority", SetPriorityArgs(7, PriorityWord.URGENT), a_job()) == ""
    job = a_job()
    for change, word in (({"exclusive": True}, "exclusive"), ({"deadline_at": Millis(9)}, "deadline")):
        said = refusal("edit", EditArgs(7, replace(job.spec, **change)), job)
        assert said.startswith(f"Slurm lets only its administrators change `{word}`")
    assert refusal("edit", EditArgs(7, replace(job.spec, nice=5)), job) == ""
    for op in ("suspend", "resume"):
        assert refusal(op, JobArgs(7), a_job("RUNNING")).startswith("Slurm lets only its administrators suspend")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"Nice": "5"}, ""),
        ({"nice": "-5"}, "Only administrators of this cluster give a negative nice value."),
        ({"Comment": "x", "AdminComment": "y"}, "AdminComment is for administrators of this cluster"),
        ({"SITEFACTOR": "1"}, "SITEFACTOR is for administrators of this cluster"),
        ({"Comment": "-5"}, ""),
    ],
)
def test_fields_of_administrators_are_refused_to_owners(fields: dict[str, str], said: str) -> None:
    job = a_job()
    if said:
        with pytest.raises(RequestRefused, match=said):
            preflight.judge_directive(UpdateJob(7, fields), job, "ann")
    else:
        preflight.judge_directive(UpdateJob(7, fields), job, "ann")
    preflight.judge_directive(SendSignal(7, "USR1"), job, "ann")
    with pytest.raises(RequestRefused, match="not yours"):
        preflight.judge_directive(SendSignal(7, "USR1"), job, "bob")


def accounts(*own: str) -> Accounts:
    return Accounts(
        associations={
            each.key: each
            for each in (
                Association(account="nlp", qos=("scavenger",)),
                Association(account="nlp", user="ann", qos=own),
                Association(account="nlp", user="bob", qos=("high",)),
            )
        },
        qos={name: Qos(name=name) for name in ("normal", "high", "low")},
    )


@pytest.mark.parametrize(
    ("wanted", "own", "advice"),
    [
        ("", ("high", "normal"), "You may use: high, normal."),
        ("", (), "This cluster has: high, low, normal."),
        ("", ("gone",), "You may use: high, low, normal."),
        ("fast", ("high",), "This cluster has no QOS fast. You may use: high."),
        (
            "urgent",
            (),
            "This cluster has no QOS urgent, which the priority urgent is on Slurm. This cluster has: high, ",
        ),
        ("low", ("high",), "The QOS low is not among those of the job's user and account. You may use: high."),
        (
            "normal",
            ("high",),
            "The QOS normal, which the priority normal is on Slurm is not among those of the job's user and account.",
        ),
    ],
)
def test_a_refused_qos_is_explained_with_those_that_exist(wanted: str, own: tuple[str, ...], advice: str) -> None:
    assert preflight.qos_advice(wanted, accounts(*own), "ann").startswith(advice)
    assert preflight.qos_advice(wanted, replace(accounts(), qos={}), "ann") == ""
