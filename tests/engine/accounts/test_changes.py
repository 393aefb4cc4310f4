"""Accounts, users and QOS: what a change makes of the tree, who may, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.engine.access import Actor
from cockpit.engine.accounts.changes import change_accounts
from cockpit.engine.apply.events import apply
from cockpit.engine.state import ClusterState
from cockpit.engine.views.accounts import accounts_shown
from cockpit.model import accountchange as change
from cockpit.model.accounts import Accounts, Association, AssocKey, ResourceLimits, Usage, account_troubles, assoc_key
from cockpit.model.cluster import Cluster, Partition
from cockpit.model.events import EventRecord
from cockpit.model.ids import JobId, UserName
from cockpit.model.job import Job, JobState, Submitter
from cockpit.model.refusal import Refusal, RefusalKind
from tests.builders import ANN, BOB, NOON, a_spec

ROOT = Actor(Submitter(UserName("root"), 0, 0, (), "/root"), admin=True)
BOSS = Actor(Submitter(UserName("carol"), 1003, 1003, (), "/home/carol"), admin=False)
SETTINGS = change.AssociationChange


def made(*changes: change.AccountChange, state: ClusterState | None = None) -> ClusterState:
    """The state after an administrator's changes."""
    state = state or ClusterState(cluster=Cluster(partitions=(Partition(name="a4"),)))
    for each in changes:
        decided = change_accounts(state, ROOT, each)
        assert not isinstance(decided, Refusal), decided.message
        for body in decided:
            apply(state, EventRecord(seq=state.seq + 1, at=NOON, actor="root", origin="socket", body=body))
    return state


def research() -> ClusterState:
    return made(
        change.AddAccount("research", SETTINGS(shares=60, limits=change.LimitsChange(max_jobs=4))),
        change.AddAccount("vision", SETTINGS(parent="Research")),
        change.AddUser("ann", "vision"),
        change.AddUser("ann", "vision", "a4", SETTINGS(shares="parent")),
        change.AddUser("bob", "research"),
        change.AddCoordinators("research", ("carol",)),
        change.AddQos("High", change.QosChange(priority=100)),
    )


def refused(state: ClusterState, wanted: change.AccountChange, actor: Actor = ROOT) -> tuple[RefusalKind, str]:
    decided = change_accounts(state, actor, wanted)
    assert isinstance(decided, Refusal)
    return decided.kind, decided.message


def with_job(
    state: ClusterState, job: int = 7, state_of_job: JobState = JobState.QUEUED, **fields: Any
) -> ClusterState:
    submitter = fields.pop("submitter", ANN)
    state.jobs[JobId(job)] = Job(
        id=JobId(job),
        spec=a_spec(),
        submitter=submitter,
        project="p",
        submitted_at=NOON,
        state_since=NOON,
        state=state_of_job,
        **fields,
    )
    return state


@pytest.mark.req("SC-16")
def test_accounts_and_users_are_added() -> None:
    associations = research().accounts.associations
    assert associations[assoc_key("research")] == Association(
        account="research", parent="root", shares=60, limits=ResourceLimits(max_jobs=4), coordinators=("carol",)
    )
    assert associations[assoc_key("vision")].parent == "research"
    assert associations[assoc_key("vision", "ann")].default
    assert associations[assoc_key("vision", "ann", "a4")].shares is None


@pytest.mark.req("SC-16")
def test_unnamed_fields_are_unchanged_and_minus_one_removes_a_limit() -> None:
    state = made(
        change.ModifyAccount(
            "research", SETTINGS(limits=change.LimitsChange(grp_tres={"cpu": 8.0, "mem": 64.0}, max_submit=9))
        ),
        change.ModifyAccount(
            "RESEARCH", SETTINGS(priority=5, limits=change.LimitsChange(max_jobs=-1, grp_tres={"cpu": -1.0}))
        ),
        state=research(),
    )
    found = state.accounts.associations[assoc_key("research")]
    assert found.limits == ResourceLimits(max_submit=9, grp_tres={"mem": 64.0})
    assert (found.shares, found.priority, found.coordinators) == (60, 5, ("carol",))


def test_lists_are_replaced_extended_and_reduced() -> None:
    state = made(
        change.ModifyUser("ann", SETTINGS(qos=("normal", "high"))),
        change.ModifyUser("ann", SETTINGS(qos=("-normal",)), "vision", "a4"),
        change.ModifyUser("bob", SETTINGS(qos=("+high",))),
        state=research(),
    )
    qos = {key: each.qos for key, each in state.accounts.associations.items() if each.user and each.qos}
    assert qos == {"vision/ann": ("normal", "high"), "vision/ann/a4": ("high",), "research/bob": ("high",)}


def test_a_user_has_one_default_account() -> None:
    state = made(change.AddUser("ann", "research", change=SETTINGS(default=True)), state=research())
    defaults = [key for key, each in state.accounts.associations.items() if each.user == "ann" and each.default]
    assert defaults == ["research/ann"]


def test_moving_an_account() -> None:
    state = made(change.ModifyAccount("vision", SETTINGS(parent="root")), state=research())
    assert state.accounts.associations[assoc_key("vision")].parent == "root"
    kind, message = refused(research(), change.ModifyAccount("research", SETTINGS(parent="vision")))
    assert (kind, message) == (RefusalKind.INVALID, "parent: research would be above itself.")


def test_removing_an_account_removes_its_subtree() -> None:
    state = made(change.RemoveAccount("research"), state=research())
    assert [key for key in state.accounts.associations if not key.startswith("root")] == []


def test_a_change_without_effect_writes_no_event() -> None:
    assert change_accounts(research(), ROOT, change.ModifyAccount("research", SETTINGS(shares=60))) == []


@pytest.mark.req("SC-16")
@pytest.mark.parametrize(
    "wanted",
    [
        change.RemoveAccount("vision"),
        change.RemoveAccount("research"),
        change.RemoveUser("ann"),
        change.RemoveUser("ann", "vision", "a4"),
    ],
)
@pytest.mark.parametrize("state_of_job", [JobState.QUEUED, JobState.RUNNING])
def test_an_account_or_user_with_jobs_is_not_removed(wanted: change.AccountChange, state_of_job: JobState) -> None:
    state = with_job(research(), state_of_job=state_of_job, account="vision", partitions=("a4",))
    kind, message = refused(state, wanted)
    assert kind is RefusalKind.CONFLICT
    assert f"7 (ann, {state_of_job})" in message


def test_ended_jobs_and_jobs_of_others_do_not_prevent_a_removal() -> None:
    state = with_job(research(), state_of_job=JobState.SUCCEEDED, account="vision")
    state = with_job(state, job=8, account="research", submitter=BOB)
    made(change.RemoveUser("ann"), state=state)
    assert not state.accounts.of("vision", "ann")


def test_a_qos_in_use_is_not_removed() -> None:
    state = with_job(research(), account="vision", qos="high")
    assert "QOS high has jobs: 7 (ann, queued)" in refused(state, change.RemoveQos("high"))[1]
    state = made(change.ModifyUser("ann", SETTINGS(qos=("high",)), "vision"), state=research())
    assert "is used by vision/ann" in refused(state, change.RemoveQos("HIGH"))[1]
    state = made(change.RemoveQos("high"), state=research())
    assert list(state.accounts.qos) == ["normal"]


def test_a_qos_is_changed() -> None:
    state = made(
        change.ModifyQos("high", change.QosChange(usage_factor=2.0, preempt=("normal",), preempt_mode="requeue")),
        state=research(),
    )
    found = state.accounts.qos["high"]
    assert (found.priority, found.usage_factor, found.preempt, found.preempt_mode) == (100, 2.0, ("normal",), "REQUEUE")


@pytest.mark.req("SC-16")
def test_minus_one_sets_the_figures_of_a_qos_back_to_their_defaults() -> None:
    state = made(
        change.ModifyQos("high", change.QosChange(grace_seconds=60, exempt_seconds=30)),
        change.ModifyQos("high", change.QosChange(priority=-1, grace_seconds=-1, exempt_seconds=-1)),
        state=research(),
    )
    found = state.accounts.qos["high"]
    assert (found.priority, found.grace_seconds, found.exempt_seconds) == (0, 0, None)


@pytest.mark.req("SC-16")
def test_flags_of_a_qos_are_kept_as_slurm_writes_them() -> None:
    state = made(change.ModifyQos("high", change.QosChange(flags=("denyonlimit", "NODECAY"))), state=research())
    assert state.accounts.qos["high"].flags == ("DenyOnLimit", "NoDecay")
    state = made(change.ModifyQos("high", change.QosChange(flags=("-DENYONLIMIT", "+overpartqos"))), state=state)
    assert state.accounts.qos["high"].flags == ("NoDecay", "OverPartQOS")


@pytest.mark.parametrize(
    ("wanted", "kind", "message"),
    [
        (change.AddAccount("Research"), RefusalKind.CONFLICT, "There is an account research already"),
        (change.AddAccount("a b"), RefusalKind.INVALID, 'name: "a b" is no name here'),
        (change.AddAccount("a", SETTINGS(parent="nobody")), RefusalKind.NOT_FOUND, "There is no account nobody"),
        (change.AddAccount("a", SETTINGS(qos=("gold",))), RefusalKind.INVALID, "qos: there is no QOS gold"),
        (change.AddAccount("a", SETTINGS(shares="many")), RefusalKind.INVALID, "shares: many is no number"),
        (change.AddAccount("a", SETTINGS(shares=-5)), RefusalKind.INVALID, "shares: -5 is not between"),
        (
            change.AddAccount("a", SETTINGS(limits=change.LimitsChange(grp_tres={"disk": 1.0}))),
            RefusalKind.INVALID,
            'grp_tres: "disk" is no resource',
        ),
        (
            change.AddAccount("a", SETTINGS(limits=change.LimitsChange(grp_tres={"cpu": float("nan")}))),
            RefusalKind.INVALID,
            "grp_tres: cpu is not between",
        ),
        (change.ModifyAccount("x", SETTINGS()), RefusalKind.NOT_FOUND, "There is no account x"),
        (change.RemoveAccount("root"), RefusalKind.CONFLICT, "The account root is above all others"),
        (change.AddUser("ann", "vision"), RefusalKind.CONFLICT, "User ann is in account vision already"),
        (change.AddUser("ann", "vision", "b4"), RefusalKind.INVALID, "partition: there is no partition b4"),
        (change.AddUser("a/b", "vision"), RefusalKind.INVALID, 'user: "a/b" is no user name'),
        (change.ModifyUser("zoe", SETTINGS()), RefusalKind.NOT_FOUND, "There is no user zoe"),
        (change.RemoveUser("root"), RefusalKind.CONFLICT, "The user root is always in the account root"),
        (change.RemoveUser("ann", "research"), RefusalKind.NOT_FOUND, "There is no user ann in account research"),
        (change.AddQos("high"), RefusalKind.CONFLICT, "There is a QOS high already"),
        (change.AddQos("a", change.QosChange(preempt_mode="NOW")), RefusalKind.INVALID, "preempt_mode: NOW is none of"),
        (change.AddQos("a", change.QosChange(usage_factor=-2.0)), RefusalKind.INVALID, "usage_factor: is not between"),
        (change.ModifyQos("gold", change.QosChange()), RefusalKind.NOT_FOUND, "There is no QOS gold"),
        (change.AddQos("a", change.QosChange(flags=("NoReserve",))), RefusalKind.INVALID, "flags: NoReserve means"),
        (change.RemoveQos("normal"), RefusalKind.CONFLICT, "The QOS normal always exists"),
        (change.RemoveCoordinators("vision", ("zoe",)), RefusalKind.NOT_FOUND, "zoe is no coordinator of vision"),
        (change.AddCoordinators("vision", ("a b",)), RefusalKind.INVALID, 'user: "a b" is no user name'),
    ],
)
def test_an_invalid_change_is_refused(wanted: change.AccountChange, kind: RefusalKind, message: str) -> None:
    state = research()
    before = state.accounts
    found, told = refused(state, wanted)
    assert (found, told.startswith(message)) == (kind, True), told
    assert state.accounts is before


EVERY_CHANGE: list[change.AccountChange] = [
    change.AddAccount("x"),
    change.ModifyAccount("research", SETTINGS(shares=2)),
    change.RemoveAccount("vision"),
    change.AddUser("zoe", "vision"),
    change.ModifyUser("ann", SETTINGS(shares=9)),
    change.RemoveUser("ann"),
    change.AddQos("x"),
    change.ModifyQos("high", change.QosChange()),
    change.RemoveQos("high"),
    change.AddCoordinators("vision", ("ann",)),
    change.RemoveCoordinators("research", ("carol",)),
]


@pytest.mark.req("SC-16")
@pytest.mark.parametrize("wanted", EVERY_CHANGE, ids=lambda wanted: type(wanted).__name__)
def test_ordinary_users_change_nothing(wanted: change.AccountChange) -> None:
    assert refused(research(), wanted, Actor(ANN, admin=False))[0] is RefusalKind.DENIED


@pytest.mark.req("SC-16")
@pytest.mark.parametrize(
    ("wanted", "may"),
    [
        (change.AddAccount("x", SETTINGS(parent="research")), True),
        (change.AddAccount("x"), False),
        (change.ModifyAccount("vision", SETTINGS(shares=5)), True),
        (change.ModifyAccount("vision", SETTINGS(parent="root")), False),
        (change.ModifyAccount("research", SETTINGS(shares=500)), False),
        (change.RemoveAccount("vision"), True),
        (change.RemoveAccount("research"), False),
        (change.AddUser("zoe", "vision"), True),
        (change.AddUser("zoe", "root"), False),
        (change.AddUser("zoe", "vision", change=SETTINGS(qos=("high",))), False),
        (change.AddUser("zoe", "vision", change=SETTINGS(qos=("normal",), default_qos="normal")), True),
        (change.AddUser("zoe", "vision", change=SETTINGS(priority=7)), False),
        (change.ModifyUser("ann", SETTINGS(shares=9)), True),
        (change.ModifyUser("bob", SETTINGS(default_qos="high")), False),
        (change.RemoveUser("ann"), True),
        (change.AddCoordinators("vision", ("ann",)), True),
        (change.AddCoordinators("research", ("ann",)), False),
        (change.AddQos("x"), False),
        (change.ModifyQos("high", change.QosChange(priority=1)), False),
    ],
)
def test_coordinators_administer_what_is_below_their_account(wanted: change.AccountChange, may: bool) -> None:
    decided = change_accounts(research(), BOSS, wanted)
    assert (not isinstance(decided, Refusal)) is may
    assert may or (isinstance(decided, Refusal) and decided.kind is RefusalKind.DENIED)


def test_the_tree_as_rows_with_usage_and_jobs() -> None:
    state = with_job(research(), account="vision", partitions=("a4",))
    with_job(state, job=8, state_of_job=JobState.RUNNING, account="research", submitter=BOB)
    state.usage = {AssocKey("research/"): Usage(raw=90.4)}
    rows = {row.association.key: row for row in accounts_shown(state, ROOT).rows}
    assert [(key, row.depth) for key, row in rows.items() if not key.startswith("root")] == [
        ("research/", 1),
        ("vision/", 2),
        ("vision/ann", 3),
        ("vision/ann/a4", 3),
        ("research/bob", 2),
    ]
    research_row = rows[AssocKey("research/")]
    assert (research_row.queued, research_row.running, research_row.used) == (1, 1, 90.4)
    assert rows[AssocKey("vision/ann/a4")].queued == 1
    assert rows[AssocKey("vision/ann")].queued == 0


def test_users_see_themselves_and_coordinators_their_users() -> None:
    def users(actor: Actor) -> set[str]:
        return {row.association.user for row in accounts_shown(research(), actor).rows} - {""}

    assert users(Actor(BOB, admin=False)) == {"bob"}
    assert users(BOSS) == {"ann", "bob"}


names = st.sampled_from(["root", "a", "b", "C", "zoe", "gold", "normal", "a b", ""])
settings_of = st.builds(
    SETTINGS,
    parent=st.none() | names,
    shares=st.none() | st.integers(-2, 5) | st.just("parent"),
    qos=st.none() | st.lists(names | names.map(lambda name: f"-{name}"), max_size=3).map(tuple),
    default_qos=st.none() | names,
    default=st.none() | st.booleans(),
)
changes: st.SearchStrategy[change.AccountChange] = st.one_of(
    st.builds(change.AddAccount, names, settings_of),
    st.builds(change.ModifyAccount, names, settings_of),
    st.builds(change.RemoveAccount, names),
    st.builds(change.AddUser, names, names, st.sampled_from(["", "a4"]), settings_of),
    st.builds(change.ModifyUser, names, settings_of, names),
    st.builds(change.RemoveUser, names, names),
    st.builds(change.AddQos, names),
    st.builds(change.RemoveQos, names),
    st.builds(change.AddCoordinators, names, st.lists(names, max_size=2).map(tuple)),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(changes, max_size=12))
def test_any_sequence_of_requests_leaves_one_valid_tree(wanted: list[change.AccountChange]) -> None:
    state = ClusterState(cluster=Cluster(partitions=(Partition(name="a4"),)))
    for each in wanted:
        decided = change_accounts(state, ROOT, each)
        for body in [] if isinstance(decided, Refusal) else decided:
            apply(state, EventRecord(seq=state.seq + 1, at=NOON, actor="root", origin="socket", body=body))
        assert list(account_troubles(state.accounts)) == []
        assert {*Accounts().associations, *Accounts().qos} <= {*state.accounts.associations, *state.accounts.qos}
