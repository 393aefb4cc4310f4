"""What of a job is open to whom, and what its owner may open."""

from __future__ import annotations

from typing import get_args, get_type_hints

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.engine.access import Actor, access_to, may_see, refuse
from cockpit.engine.sharing import projects_of
from cockpit.engine.submission.submit import edit, submit
from cockpit.engine.views.redaction import HIDDEN_JOB, shown_body, shown_obstacle, shown_reason, shown_to
from cockpit.model import events
from cockpit.model.attempt import EndCause, Grounds
from cockpit.model.cluster import Cluster, Project
from cockpit.model.ids import JobId, Millis
from cockpit.model.jobdetail import GrowthObstacle
from cockpit.model.operations import Right
from cockpit.model.pod_reasons import QueueWaits
from cockpit.model.reasons import (
    BehindHead,
    DependencyNever,
    EvictionPending,
    QuotaMaxJobs,
    QuotaWaits,
    WaitsForJob,
    WouldDelay,
)
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import Access, DependencyKind
from tests.builders import ANN, BOB, a_node, a_spec
from tests.engine.driver import EngineDriver

RULES = Cluster(
    projects=(Project(name="vision", users=("ann",), groups=("lab",)), Project(name="nlp", users=("bob",))),
)
ANNA, BOBBY = Actor(ANN, False, frozenset({"vision"})), Actor(BOB, False, frozenset({"vision"}))
STRANGER, ADMIN = Actor(BOB, admin=False), Actor(BOB, admin=True)


def an_engine(rules: Cluster = RULES) -> EngineDriver:
    engine = EngineDriver(a_node())
    engine.tell(events.ClusterConfigured(rules))
    return engine


def shared(engine: EngineDriver, access: Access, name: str = "net") -> JobId:
    job = JobId(engine.machine.state.last_job_id + 1)
    assert engine.act(submit(engine.machine, [a_spec(name, project="vision", access=access)], ANNA)) is None
    return job


@pytest.mark.req("JT-60")
def test_membership_is_by_name_or_by_group() -> None:
    assert projects_of(RULES.projects, "ann", ()) == {"vision"}
    assert projects_of(RULES.projects, "bob", {"lab", "users"}) == {"vision", "nlp"}
    assert projects_of(RULES.projects, "eve", {"users"}) == frozenset()


@pytest.mark.req("JT-02", "JT-60")
@pytest.mark.parametrize("access", Access)
def test_only_members_have_the_access_that_the_owner_granted(access: Access) -> None:
    engine = an_engine()
    job = engine.job(shared(engine, access))
    assert access_to(ANNA, job) is access_to(ADMIN, job) is Access.RW
    assert access_to(BOBBY, job) is access
    assert access_to(STRANGER, job) is access_to(replace(BOBBY, shared=False), job) is Access.NONE


@pytest.mark.req("JT-60")
def test_administration_is_for_administrators() -> None:
    assert refuse(ADMIN, Right.ADMINISTER, "set_weights") is None
    refused = refuse(BOBBY, Right.ADMINISTER, "set_weights")
    assert refused is not None
    assert (refused.kind, "set weights" in refused.message) == (RefusalKind.DENIED, True)


@pytest.mark.req("JT-02")
def test_where_sharing_is_off_only_the_access_none_is_accepted() -> None:
    machine = an_engine(replace(RULES, sharing=False)).machine
    for actor in (ANNA, ADMIN):
        refused = submit(machine, [a_spec(access=Access.RO)], actor)
        assert isinstance(refused, Refusal)
        assert refused.message == "access: sharing is switched off on this cluster; write none, or leave it out"
    assert not isinstance(submit(machine, [a_spec()], ANNA), Refusal)


@pytest.mark.req("JT-02", "JT-60")
@pytest.mark.parametrize(
    ("project", "actor", "fits"),
    [
        ("vision", ANNA, True),
        ("nlp", ANNA, False),
        ("vision", STRANGER, False),
        ("elsewhere", ANNA, False),
        ("ann", ANNA, True),
        ("ann", STRANGER, False),
        ("nlp", ADMIN, True),
    ],
)
def test_a_cluster_with_projects_accepts_jobs_of_their_members(project: str, actor: Actor, fits: bool) -> None:
    decided = submit(an_engine().machine, [a_spec(project=project)], actor)
    assert isinstance(decided, list) is fits
    assert not isinstance(submit(an_engine(Cluster()).machine, [a_spec(project=project)], actor), Refusal)


def test_a_project_that_has_a_users_name_is_not_that_users() -> None:
    rules = Cluster(projects=(Project(name="bob", users=("ann",)),))
    refused = submit(an_engine(rules).machine, [a_spec()], STRANGER)
    assert isinstance(refused, Refusal)
    assert refused.message.startswith("project: you are not in bob")


@pytest.mark.req("JT-02", "JT-60")
@pytest.mark.parametrize(("field", "value"), [("access", Access.NONE), ("output", "/elsewhere")])
def test_a_member_may_edit_only_what_does_not_widen_access(field: str, value: object) -> None:
    engine = an_engine()
    job = engine.job(shared(engine, Access.RW))
    changed = replace(job.spec, **{field: value})
    refused = edit(engine.machine, job, changed, actor=BOBBY)
    assert isinstance(refused, Refusal)
    assert refused.message.startswith(f"{field}: only ann")
    for actor in (ANNA, ADMIN):
        assert not isinstance(edit(engine.machine, job, changed, actor=actor), Refusal)
    assert not isinstance(edit(engine.machine, job, replace(job.spec, command="false"), actor=BOBBY), Refusal)


@pytest.mark.req("JT-60")
@pytest.mark.parametrize("body", get_args(events.EventBody), ids=lambda body: body.__struct_config__.tag)
def test_every_event_that_names_another_job_is_known_to_hide_it(body: type[msgspec.Struct]) -> None:
    """A new one must be added to `shown_body`; what a fleet says of itself is in no user's sight."""
    names_others = {name for name, hint in get_type_hints(body).items() if name != "job" and _holds_a_job(hint)}
    hidden = {
        "job_submitted": {"spec", "array", "part"},
        "job_edited": {"spec"},
        "dependency_met": {"dependency"},
        "dependency_failed": {"dependency", "because"},
        "ending_began": {"for_job"},
        "room_made": {"others"},
        "job_suspended": {"suspension"},
        "workers_recalled": {"for_job"},
    }
    assert names_others == hidden.get(str(body.__struct_config__.tag), set())


def _holds_a_job(hint: object, around: tuple[object, ...] = ()) -> bool:
    """`JobId` itself, or something with one in it; a tree holds itself."""
    if hint is JobId or hint in around:
        return hint is JobId
    is_struct = isinstance(hint, type) and issubclass(hint, msgspec.Struct)
    inner = get_type_hints(hint).values() if is_struct else get_args(hint)
    return any(_holds_a_job(each, (*around, hint)) for each in inner)


@pytest.mark.req("JT-60")
def test_reasons_name_only_jobs_that_the_user_may_see() -> None:
    engine = an_engine()
    hidden, known = shared(engine, Access.NONE), shared(engine, Access.RO, "known")
    shown = shown_to(BOBBY, engine.machine.state.jobs)
    obstacle = GrowthObstacle(reserved_for=(hidden, known), held_by=(known, hidden), limit=BehindHead(hidden))
    assert shown_obstacle(shown, obstacle, own=False) == GrowthObstacle(
        reserved_for=(HIDDEN_JOB, known), held_by=(known, HIDDEN_JOB), limit=BehindHead(HIDDEN_JOB)
    )
    assert shown_reason(shown, WouldDelay(hidden, Millis(5))) == WouldDelay(HIDDEN_JOB, Millis(5))
    waits = QuotaWaits(QueueWaits("KubeQueue", "q"), QuotaMaxJobs("root", 1), after=hidden)
    assert shown_reason(shown, waits) == replace(waits, after=HIDDEN_JOB)
    assert shown_reason(shown, EvictionPending((known, hidden), None)) == EvictionPending((known, HIDDEN_JOB), None)
    for reason in (WaitsForJob(DependencyKind.AFTER_OK, hidden), DependencyNever(DependencyKind.AFTER_OK, hidden)):
        assert shown_reason(shown, reason, own=False) == replace(reason, job=HIDDEN_JOB)
        assert shown_reason(shown, reason) is reason, "it names what its owner has named"
    assert may_see(BOBBY, engine.job(known))


@pytest.mark.req("JT-25")
def test_an_edit_to_several_nodes_without_a_mode_is_refused_as_a_submission_is() -> None:
    engine = EngineDriver(a_node("n1"), a_node("n2"))
    (job,) = engine.submit(a_spec())
    refused = edit(engine.machine, engine.job(job), replace(engine.job(job).spec, nodes=2, mode=None))
    assert isinstance(refused, Refusal)
    assert "mode: without one it is standalone" in str(refused)


@pytest.mark.req("JT-60")
def test_an_event_names_no_job_that_the_user_may_not_see_as_the_one_that_another_makes_room_for() -> None:
    secret, known = JobId(7), JobId(8)

    def shown(job: JobId) -> JobId:
        return HIDDEN_JOB if job == secret else job

    began = events.EndingBegan(JobId(1), EndCause.PREEMPTED, Millis(0), for_job=secret)
    recalled = events.WorkersRecalled(JobId(1), (0,), Millis(0), secret, Grounds.QOS)
    for body in (began, recalled):
        assert shown_body(shown, body).for_job == HIDDEN_JOB
        assert shown_body(shown, replace(body, for_job=known)).for_job == known
        assert shown_body(shown, replace(body, for_job=None)).for_job is None
