from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.model.accounts import Accounts, Association, AssocKey, Usage
from cockpit.sched.priority.share_tree import ROOT_KEY, ShareTree, fair_tree, levels, ranked
from tests.sched.share_trees import account, accounts_of, some_trees, usage_of, user

pytestmark = pytest.mark.req("SC-02")


def ranks(*associations: Association, **used: float) -> dict[AssocKey, float]:
    """Of N, by user; what each user has used by its name."""
    accounts = accounts_of(*associations)
    tree = ShareTree(accounts)
    factors = fair_tree(tree, usage_of(accounts, used))
    return {key: factor * tree.user_count for key, factor in factors.items()}


def test_the_user_with_less_usage_for_its_shares_ranks_first():
    assert ranks(
        account("lab"), user("lab", "ann", 1), user("lab", "bob", 1), user("lab", "eve", 4), ann=10, bob=20, eve=20
    ) == {"lab/eve": 3, "lab/ann": 2, "lab/bob": 1}


def test_the_level_above_decides_before_the_user_does():
    assert ranks(
        account("big", 9), account("small", 1), user("big", "ann"), user("small", "bob"), user("small", "eve"), ann=80,
        bob=20,
    ) == {"big/ann": 3, "small/eve": 2, "small/bob": 1}  # fmt: skip


def test_roots_own_user_counts_too():
    accounts = Accounts(associations={**Accounts().associations, "lab/": account("lab"), "lab/ann": user("lab", "ann")})
    assert fair_tree(ShareTree(accounts), {}) == {"root/root": 1.0, "lab/ann": 1.0}


def test_levels():
    accounts = accounts_of(
        account("lab"), user("lab", "ann", 3), user("lab", "bob", 1), user("lab", "none", 0), user("lab", "par", None),
        user("lab", "new", 4), account("par", None, "lab"),
    )  # fmt: skip
    found = levels(ShareTree(accounts), usage_of(accounts, {"ann": 30, "bob": 10, "none": 0, "par": 40}))
    assert found["lab/ann"] == (3 / 8) / (30 / 80)
    assert found["lab/bob"] == (1 / 8) / (10 / 80)
    assert found["lab/none"] == 0.0  # without shares lowest, though it used nothing
    assert found["lab/new"] == found["lab/par"] == inf
    assert found["lab/"] == 1.0


def test_without_usage_every_user_with_shares_ranks_first():
    assert ranks(account("lab"), user("lab", "ann"), user("lab", "bob", 7), user("lab", "eve", 0)) == {
        "lab/ann": 3,
        "lab/bob": 3,
        "lab/eve": 1,
    }


class TestTies:
    def test_users_that_tie_share_a_rank_and_the_next_falls_by_as_many(self):
        assert ranks(
            account("lab"), *(user("lab", name) for name in ("a", "b", "c", "d")), a=1, b=2, c=2, d=3
        ) == {"lab/a": 4, "lab/b": 3, "lab/c": 3, "lab/d": 1}  # fmt: skip

    def test_a_user_is_before_an_account_that_ties_with_it(self):
        found = ranks(
            account("below", 1, "lab"), account("lab"), user("below", "bob"), user("lab", "ann"), ann=5, bob=5
        )
        assert found == {"lab/ann": 2, "below/bob": 2}

    def test_the_first_user_of_an_account_inherits_the_rank_of_the_user_it_ties_with(self):
        assert ranks(
            account("lab"), account("below", 1, "lab"), user("lab", "ann"), user("below", "bob", 2),
            user("below", "eve", 1), ann=6, bob=3, eve=3,
        ) == {"lab/ann": 3, "below/bob": 3, "below/eve": 1}  # fmt: skip

    def test_accounts_that_tie_are_not_merged(self):
        """The manual says their users are compared with each other. They are not: first all of one, then the other."""
        assert ranks(
            account("x"), account("y"), user("x", "a", 3), user("x", "b", 1), user("y", "c", 3), user("y", "d", 1), a=1,
            b=9, c=1, d=9,
        ) == {"x/a": 4, "x/b": 3, "y/c": 3, "y/d": 1}  # fmt: skip

    def test_a_tie_is_passed_down_through_accounts(self):
        assert ranks(
            account("x"), account("y"), account("y1", 1, "y"), user("x", "a"), user("y1", "b"), user("y1", "c"), a=4,
            b=1, c=3,
        ) == {"x/a": 3, "y1/b": 3, "y1/c": 1}  # fmt: skip

    def test_an_empty_account_between_does_not_break_a_tie(self):
        assert ranks(
            account("x"), account("empty"), account("y"), user("x", "a"), user("y", "b", 0), a=0, b=0
        ) == {"x/a": 2, "y/b": 2}  # fmt: skip

    def test_a_tie_ends_at_the_first_account_or_user_that_does_not_tie(self):
        levels = {"x/": 1.0, "y/": 1.0, "x/a": 5.0, "y/b": 5.0, "y/c": 4.0, "y/d": 4.0}
        accounts = accounts_of(account("x"), account("y"), *(user(key[0], key[2]) for key in list(levels)[2:]))
        assert ranked(ShareTree(accounts), levels) == {"x/a": 1.0, "y/b": 1.0, "y/c": 0.5, "y/d": 0.5}


class TestParentShares:
    def test_a_user_with_parent_shares_is_first_in_its_account(self):
        assert ranks(
            account("lab"), user("lab", "ann"), user("lab", "par", None), user("lab", "new"), ann=1, par=99
        ) == {"lab/par": 3, "lab/new": 3, "lab/ann": 1}  # fmt: skip

    def test_an_account_with_parent_shares_is_no_level(self):
        """Its users share with its siblings."""
        assert ranks(
            account("lab"), account("open", None, "lab"), user("lab", "ann"), user("open", "bob"), user("open", "eve"),
            ann=2, bob=1, eve=3,
        ) == {"open/bob": 3, "lab/ann": 2, "open/eve": 1}  # fmt: skip

    def test_parent_shares_apply_through_several_accounts(self):
        accounts = accounts_of(account("a", None), account("b", None, "a"), user("b", "ann", 2), user("root", "bob", 6))
        tree = ShareTree(accounts)
        assert tree.parent["b/ann"] == ROOT_KEY
        assert tree.part(accounts.associations["b/ann"]) == 0.25

    def test_usage_under_parent_shares_still_counts_up_the_tree(self):
        accounts = accounts_of(account("lab"), account("open", None, "lab"), user("open", "bob"), user("lab", "ann"))
        found = levels(ShareTree(accounts), usage_of(accounts, {"bob": 30, "ann": 10}))
        assert found["open/bob"] == 0.5 / (30 / 40)


def test_an_association_outside_the_tree_has_no_share():
    found = fair_tree(ShareTree(accounts_of(user("gone", "ann"), account("lab", 1, "nowhere"), user("lab", "bob"))), {})
    assert found == {}


@given(some_trees())
def test_factors_are_ranks(drawn: tuple[Accounts, dict[AssocKey, Usage]]):
    accounts, usage = drawn
    tree = ShareTree(accounts)
    factors = fair_tree(tree, usage)
    assert factors.keys() == {key for key, each in accounts.associations.items() if each.user}
    assert all(0 < factor <= 1 for factor in factors.values())
    assert max(factors.values(), default=1.0) == 1.0
    by_rank = sorted(factors.values(), reverse=True)
    assert all(factor * tree.user_count >= len(by_rank) - place for place, factor in enumerate(by_rank))


@given(some_trees(), st.data())
def test_more_usage_never_raises_a_rank(drawn: tuple[Accounts, dict[AssocKey, Usage]], data: st.DataObject):
    """Anti-monotone in the user's own usage, except for ties above, which may raise all that tie."""
    accounts, usage = drawn
    tree = ShareTree(accounts)
    users = [each for each in accounts.associations.values() if each.user]
    each = data.draw(st.sampled_from(users))
    more = dict(usage)
    for key in (each.key, *(above.key for above in accounts.above(each))):
        more[key] = Usage(usage.get(key, Usage()).raw + data.draw(st.just(1000.0)))
    before, after = levels(tree, usage), levels(tree, more)
    for key in (each.key, *(above.key for above in accounts.above(each) if above.key != ROOT_KEY)):
        assert after[key] <= before[key] * (1 + 1e-12)
    if len(set(before.values())) == len(before) and len(set(after.values())) == len(after):
        assert fair_tree(tree, more)[each.key] <= fair_tree(tree, usage)[each.key]


@given(some_trees(), st.integers(1, 10))
def test_only_the_proportions_of_shares_matter(drawn: tuple[Accounts, dict[AssocKey, Usage]], exponent: int):
    accounts, usage = drawn
    tree = ShareTree(accounts)
    scaled = {key: Usage(each.raw * 2.0**exponent) for key, each in usage.items()}
    assert fair_tree(tree, scaled) == fair_tree(tree, usage)
