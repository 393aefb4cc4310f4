"""How a change is merged into what an association or a QOS has, and what is wrong with a forged one."""

from __future__ import annotations

from typing import Any

import pytest

from cockpit.engine.access import Actor
from cockpit.engine.accounts import limits
from cockpit.engine.accounts.coordinators import coordinates, refuse_change
from cockpit.engine.accounts.limits import (
    association_errors,
    changed_association,
    changed_limits,
    changed_names,
    changed_qos,
    qos_errors,
)
from cockpit.model import accountchange as change
from cockpit.model.accountchange import AssociationChange, LimitsChange, QosChange
from cockpit.model.accounts import Accounts, Association, Qos, ResourceLimits
from cockpit.model.refusal import RefusalKind
from tests.builders import ANN as ANN_USER
from tests.builders import BOB as BOB_USER

pytestmark = pytest.mark.req("SC-16")


@pytest.mark.parametrize(
    ("before", "wanted", "after"),
    [
        (("a", "b"), None, ("a", "b")),
        (("a", "b"), (), ()),
        (("a", "b"), ("C", "c", "d"), ("c", "d")),
        (("a", "b"), ("+C", "-a"), ("b", "c")),
        (("a", "b"), ("+b", "-x"), ("a", "b")),
        (("a",), ("+b", "c"), ("+b", "c")),
    ],
)
def test_names_are_added_removed_or_replaced(before: Any, wanted: Any, after: Any) -> None:
    assert changed_names(before, wanted) == after
    assert changed_names((), ("+Deny", "-x"), lower=False) == ("Deny",)


def test_a_limit_stays_changes_or_goes() -> None:
    before = ResourceLimits(max_jobs=3, grp_jobs=4, grp_tres={"cpu": 8.0, "mem": 5.0})
    wanted = LimitsChange(max_jobs=-1, max_submit=7, grp_tres={"cpu": -1.0, "gres/gpu": 2.0})
    assert changed_limits(before, wanted) == ResourceLimits(
        max_submit=7, grp_jobs=4, grp_tres={"mem": 5.0, "gres/gpu": 2.0}
    )
    assert changed_limits(before, LimitsChange()) == before


@pytest.mark.parametrize(("shares", "after"), [(None, 5), (7, 7), (-1, 1), ("parent", None), (0, 0)])
def test_shares_are_a_number_the_usual_one_or_the_accounts(shares: Any, after: Any) -> None:
    before = Association(account="nlp", user="ann", shares=5, priority=9, default_qos="high", qos=("high",))
    found = changed_association(before, AssociationChange(shares=shares))
    assert (found.shares, found.priority, found.default_qos, found.qos) == (after, 9, "high", ("high",))
    other = changed_association(before, AssociationChange(priority=-1, default_qos="Low", qos=("+Low",)))
    assert (other.priority, other.default_qos, other.qos) == (None, "low", ("high", "low"))


def test_every_field_of_a_qos_is_changed_by_its_own() -> None:
    before = Qos(name="high", priority=5, usage_factor=2.0, preempt_mode="CANCEL", grace_seconds=9, exempt_seconds=8)
    assert changed_qos(before, QosChange()) == before
    found = changed_qos(
        before,
        QosChange(
            priority=-1,
            usage_factor=-1,
            preempt_mode="requeue",
            grace_seconds=-1,
            exempt_seconds=-1,
            max_tres_per_user={"cpu": 4.0},
            max_tres_per_account={"cpu": 5.0},
            max_jobs_per_account=6,
            max_submit_per_account=7,
            preempt=("Low",),
            flags=("denyonlimit",),
        ),
    )
    assert (found.priority, found.usage_factor, found.preempt_mode) == (0, 1.0, "REQUEUE")
    assert (found.grace_seconds, found.exempt_seconds) == (0, None)
    assert (found.max_tres_per_user, found.max_tres_per_account) == ({"cpu": 4.0}, {"cpu": 5.0})
    assert (found.max_jobs_per_account, found.max_submit_per_account) == (6, 7)
    assert (found.preempt, found.flags) == (("low",), ("DenyOnLimit",))
    assert changed_qos(found, QosChange(flags=("-DENYONLIMIT",))).flags == ()
    assert changed_qos(before, QosChange(usage_factor=0.5)).usage_factor == 0.5


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (AssociationChange(shares="many"), "shares: many is no number; write one, or parent"),
        (AssociationChange(shares="parent"), ""),
        (AssociationChange(shares=-1), ""),
        (AssociationChange(shares=-2), "shares: "),
        (AssociationChange(priority=2**32 - 2), ""),
        (AssociationChange(priority=2**32 - 1), "priority: "),
        (AssociationChange(qos=("a b",)), "qos: "),
        (AssociationChange(qos=("+ok", "-ok")), ""),
        (AssociationChange(qos=("x",) * (limits.MOST_NAMES + 1)), "qos: has 4097 names; give at most 4096"),
        (AssociationChange(qos=("x",) * limits.MOST_NAMES), ""),
        (AssociationChange(limits=LimitsChange(max_jobs=2**31)), "max_jobs: "),
        (AssociationChange(limits=LimitsChange(max_jobs=2**31 - 1)), ""),
        (AssociationChange(limits=LimitsChange(grp_tres={"cpu": -1.0})), ""),
        (AssociationChange(limits=LimitsChange(grp_tres={"cpu": -2.0})), "grp_tres: cpu is not between 0 and"),
        (AssociationChange(limits=LimitsChange(grp_tres={"cpu": float("nan")})), "grp_tres: cpu is not between"),
        (AssociationChange(limits=LimitsChange(grp_tres={"no thing": 1.0})), "grp_tres: "),
        (
            AssociationChange(limits=LimitsChange(grp_tres={f"gres/x{n}": 1.0 for n in range(4097)})),
            "grp_tres: has 4097 resources; give at most 4096",
        ),
    ],
)
def test_what_is_wrong_with_an_association_is_named(wanted: AssociationChange, said: str) -> None:
    errors = list(association_errors(wanted))
    assert len(errors) == bool(said)
    assert "".join(errors).startswith(said)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (QosChange(priority=-2), "priority: "),
        (QosChange(max_jobs_per_account=-2), "max_jobs_per_account: "),
        (QosChange(max_submit_per_account=-2), "max_submit_per_account: "),
        (QosChange(grace_seconds=-2), "grace_seconds: "),
        (QosChange(exempt_seconds=-2), "exempt_seconds: "),
        (QosChange(max_tres_per_user={"cpu": -2.0}), "max_tres_per_user: "),
        (QosChange(max_tres_per_account={"cpu": -2.0}), "max_tres_per_account: "),
        (QosChange(usage_factor=-1), ""),
        (QosChange(usage_factor=0), ""),
        (QosChange(usage_factor=1e9), ""),
        (QosChange(usage_factor=1.1e9), "usage_factor: is not between 0 and 1e+09"),
        (QosChange(usage_factor=-0.5), "usage_factor: "),
        (QosChange(usage_factor=float("inf")), "usage_factor: "),
        (QosChange(preempt_mode="cancel"), ""),
        (QosChange(preempt_mode="hug"), "preempt_mode: hug is none of OFF, CANCEL, GANG, REQUEUE, SUSPEND"),
        (QosChange(preempt=("a b",)), "preempt: "),
        (QosChange(flags=("+DenyOnLimit", "-denyonlimit")), ""),
        (QosChange(flags=("+Fly",)), "flags: +Fly means nothing here; there are "),
        (QosChange(limits=LimitsChange(grp_jobs=-2)), "grp_jobs: "),
    ],
)
def test_what_is_wrong_with_a_qos_is_named(wanted: QosChange, said: str) -> None:
    errors = list(qos_errors(wanted))
    assert len(errors) == bool(said)
    assert "".join(errors).startswith(said)


TREE = Accounts(
    associations={
        each.key: each
        for each in (
            Association(account="root"),
            Association(account="nlp", parent="root", coordinators=("ann",), qos=("high", "low")),
            Association(account="nlp-a", parent="nlp"),
            Association(account="cv", parent="root"),
            Association(account="nlp-a", user="bob"),
            Association(account="cv", user="eve"),
        )
    }
)
ANN = Actor(ANN_USER, admin=False)


def test_a_coordinator_has_all_accounts_below() -> None:
    assert coordinates(TREE, "ann", "NLP")
    assert coordinates(TREE, "ann", "nlp-a")
    assert not coordinates(TREE, "ann", "cv")
    assert not coordinates(TREE, "ann", "none")
    assert not coordinates(TREE, "bob", "nlp-a")


@pytest.mark.parametrize(
    ("wanted", "refused"),
    [
        (change.AddAccount("new", AssociationChange(parent="nlp")), False),
        (change.AddAccount("new"), True),
        (change.ModifyAccount("nlp-a", AssociationChange(shares=2)), False),
        (change.ModifyAccount("nlp", AssociationChange(shares=2)), True),
        (change.ModifyAccount("nlp-a", AssociationChange(parent="cv")), True),
        (change.RemoveAccount("nlp-a"), False),
        (change.RemoveAccount("nlp"), True),
        (change.RemoveAccount("none"), True),
        (change.AddCoordinators("nlp-a", ("bob",)), False),
        (change.RemoveCoordinators("nlp", ("ann",)), True),
        (change.AddUser("joe", "nlp-a"), False),
        (change.AddUser("joe", "cv"), True),
        (change.ModifyUser("bob", AssociationChange(shares=2)), False),
        (change.ModifyUser("eve", AssociationChange(shares=2)), True),
        (change.ModifyUser("bob", AssociationChange(shares=2), "nlp-a"), False),
        (change.RemoveUser("bob"), False),
        (change.RemoveUser("nobody"), True),
        (change.AddQos("x"), True),
        (change.ModifyUser("bob", AssociationChange(priority=2)), True),
        (change.ModifyUser("bob", AssociationChange(qos=("+High",))), False),
        (change.ModifyUser("bob", AssociationChange(qos=("secret",))), True),
        (change.ModifyUser("bob", AssociationChange(default_qos="Low")), False),
        (change.ModifyUser("bob", AssociationChange(default_qos="secret")), True),
    ],
)
def test_coordinators_change_what_is_below_their_account(wanted: change.AccountChange, refused: bool) -> None:
    found = refuse_change(TREE, ANN, wanted)
    assert (found is not None) is refused
    assert found is None or found.kind is RefusalKind.DENIED
    assert refuse_change(TREE, Actor(BOB_USER, admin=True), wanted) is None


def test_what_a_coordinator_may_not_give_is_named() -> None:
    secret = refuse_change(TREE, ANN, change.ModifyUser("bob", AssociationChange(qos=("secret",))))
    assert secret is not None
    assert secret.message == "qos: account nlp-a itself may not use secret."
    usual = refuse_change(TREE, ANN, change.ModifyUser("bob", AssociationChange(priority=2)))
    assert usual is not None
    assert usual.message.startswith("priority: only an administrator sets it")
