from __future__ import annotations

from math import log, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.model.accounts import Accounts, Association, AssocKey, Usage
from cockpit.sched.priority.share_tree import ShareTree, classic_share
from tests.sched.share_trees import account, accounts_of, some_trees, usage_of, user

pytestmark = pytest.mark.req("SC-02")

LAB = (account("lab", 3), account("other", 1), user("lab", "ann", 2), user("lab", "bob", 1), user("other", "eve", 1))


def shares(*associations: Association, used: dict[str, float] | None = None, **options) -> dict[AssocKey, float]:
    accounts = accounts_of(*associations)
    return classic_share(ShareTree(accounts), usage_of(accounts, used or {}), **options)


def test_without_usage_every_user_with_shares_has_the_full_factor():
    found = shares(*LAB, user("lab", "none", 0))
    assert found["lab/ann"] == found["other/eve"] == found["lab/"] == 1.0
    assert found["lab/none"] == 0.0


def test_root_itself_is_half():
    assert shares(*LAB, used={"ann": 1})["root/"] == 0.5


def test_an_account_right_below_root_is_measured_by_its_own_usage():
    assert shares(*LAB, used={"ann": 30, "eve": 10})["lab/"] == 2 ** -(0.75 / 0.75)


def test_a_user_answers_for_its_siblings_by_its_part_of_their_shares():
    """Ue = Ua + (Ue of the account - Ua) x s / sum of s."""
    found = shares(*LAB, used={"ann": 30, "bob": 30, "eve": 40})
    effective = 0.3 + (0.6 - 0.3) * (2 / 3)
    assert found["lab/ann"] == pytest.approx(2 ** -(effective / (2 / 3 * 3 / 4)), rel=1e-15)


def test_dampening_moves_every_factor_nearer_to_one():
    plain, damped = (shares(*LAB, used={"ann": 30}, dampening=factor) for factor in (1, 3))
    assert damped["lab/ann"] == pytest.approx(plain["lab/ann"] ** (1 / 3))


def test_parent_shares_are_those_of_the_account():
    found = shares(*LAB, user("lab", "par", None), used={"ann": 30, "par": 30})
    assert found["lab/par"] == found["lab/"]


def test_a_user_of_root_with_parent_shares_has_roots():
    assert shares(user("root", "par", None), *LAB, used={"par": 5})["root/par"] == 0.5


def test_an_account_with_parent_shares_is_no_level():
    found = shares(
        account("lab"), account("open", None, "lab"), user("open", "bob"), user("lab", "ann"), used={"bob": 8}
    )
    beside = shares(account("lab"), user("lab", "bob"), user("lab", "ann"), used={"bob": 8})
    assert (found["open/bob"], found["lab/ann"]) == (beside["lab/bob"], beside["lab/ann"])


def test_siblings_without_shares_cause_no_division_by_zero():
    found = shares(account("lab"), user("lab", "ann", 0), user("lab", "bob", 0), used={"ann": 8})
    assert (found["lab/ann"], found["lab/bob"]) == (0.0, 0.0)


def test_shares_multiply_up_the_tree():
    accounts = accounts_of(
        account("a", 1), account("b", 3), account("c", 1, "b"), account("d", 4, "b"), user("d", "u", 2)
    )
    tree = ShareTree(accounts)
    assert list(tree.parts(accounts.associations["d/u"])) == [1.0, 0.8, 0.75]
    assert prod(tree.parts(accounts.associations["d/u"])) == pytest.approx(0.6)


class TestDepthOblivious:
    def test_a_user_as_far_off_as_its_account_is_judged_by_both(self):
        """The account used all though it has three quarters; ann used all of that though she has two thirds: k = 1."""
        found = shares(*LAB, used={"ann": 30}, depth_oblivious=True)
        ratio_above, ratio = 1 / 0.75, (1 / (2 / 3 * 0.75)) / (1 / 0.75)
        assert found["lab/ann"] == pytest.approx(2 ** -(ratio_above * ratio))

    def test_a_user_that_would_bring_its_account_back_counts_less(self):
        """bob used less than his part of an account that used too much."""
        found = shares(*LAB, used={"ann": 59, "bob": 1}, depth_oblivious=True)
        ratio_above = 1 / 0.75
        ratio = (1 / 60) / (0.25) / (1 / 0.75)
        k = 1 / (1 + (5 * log(ratio_above)) ** 2)
        assert found["lab/bob"] == pytest.approx(2 ** -(ratio_above * ratio**k))

    def test_an_unused_association_has_the_full_factor(self):
        assert shares(*LAB, used={"ann": 30}, depth_oblivious=True)["lab/bob"] == 1.0

    def test_right_below_root_it_changes_nothing(self):
        used = {"ann": 59, "bob": 1, "eve": 5}
        plain, oblivious = (shares(*LAB, used=used, depth_oblivious=way) for way in (False, True))
        assert plain["lab/"] == oblivious["lab/"]
        assert plain["lab/bob"] != oblivious["lab/bob"]


@given(some_trees(), st.booleans(), st.integers(1, 5))
def test_between_nothing_and_all(drawn: tuple[Accounts, dict[AssocKey, Usage]], oblivious: bool, dampening: int):
    accounts, usage = drawn
    found = classic_share(ShareTree(accounts), usage, dampening=dampening, depth_oblivious=oblivious)
    assert found.keys() == accounts.associations.keys()
    assert all(0 <= factor <= 1 for factor in found.values())


@given(some_trees(), st.data())
def test_using_more_never_helps(drawn: tuple[Accounts, dict[AssocKey, Usage]], data: st.DataObject):
    accounts, usage = drawn
    each = data.draw(st.sampled_from([each for each in accounts.associations.values() if each.user]))
    more = dict(usage)
    for key in (each.key, *(above.key for above in accounts.above(each))):
        more[key] = Usage(usage.get(key, Usage()).raw * 1.5 + 10)
    tree = ShareTree(accounts)
    if usage["root/"].raw:
        assert classic_share(tree, more)[each.key] <= classic_share(tree, usage)[each.key] + 1e-12
