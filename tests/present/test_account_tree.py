"""The tree of accounts that a view shows: what it takes, folds and filters, and the panel about its rows."""

from __future__ import annotations

from datetime import UTC
from math import inf

import pytest
from msgspec.structs import replace

from cockpit.model.accounting import Spending, UsageSum
from cockpit.model.accounts import Association, AssocKey
from cockpit.model.ids import Millis
from cockpit.model.view import AccountRow
from cockpit.present.account_panel import account_answer, first_account_lines, place_answer
from cockpit.present.columns import Context
from cockpit.present.filters import FilterError
from cockpit.present.spans import plain
from cockpit.present.tables.accounts import AccountTree
from tests.doubles.account_tree import account_tree
from tests.doubles.samples import HOUR, NOW

ROWS = account_tree().rows
WIDE = 100


def a_row(account: str, depth: int, user: str = "", **fields: object) -> AccountRow:
    parent = "" if user or account == "root" else "root"
    fields = {"used": 12.0, "queued": 1, "running": 2, **fields}
    return AccountRow(Association(account=account, user=user, parent=parent), depth, **fields)


TWO_ACCOUNTS = (
    a_row("root", 0),
    a_row("nlp", 1),
    a_row("nlp", 2, "ann"),
    a_row("nlp", 2, "bob"),
    a_row("vision", 1),
    a_row("vision", 2, "ann"),
)


def a_tree(rows: tuple[AccountRow, ...] = TWO_ACCOUNTS) -> AccountTree:
    tree = AccountTree(lambda: Context(now=NOW, zone=UTC))
    tree.take(rows)
    return tree


def key(tree: AccountTree, account: str, user: str = "") -> AssocKey:
    return next(
        row.association.key for row in tree.rows() if (row.association.account, row.association.user) == (account, user)
    )


def shown(tree: AccountTree) -> list[str]:
    places = [row.association for key in tree.order if (row := tree.row(key)) is not None]
    return [place.user or place.account for place in places]


@pytest.mark.req("UI-09")
def test_added_and_removed_rows_are_distinguished_from_changed_ones() -> None:
    tree = AccountTree(lambda: Context(now=NOW, zone=UTC))
    assert tree.take(ROWS[:2]) == ([row.association.key for row in ROWS[:2]], True)
    assert tree.take(ROWS) == ([ROWS[2].association.key], True)
    assert shown(tree) == ["root", "vision", "alice"]
    assert tree.place(ROWS[2].association.key) == 2
    used = replace(ROWS[1], used=99.0)
    assert tree.take((ROWS[0], used, ROWS[2])) == ([used.association.key], False)
    assert tree.take(ROWS[:1]) == ([], True)
    assert shown(tree) == ["root"]


@pytest.mark.req("UI-09")
def test_a_folded_account_hides_what_is_below_it_and_stays_folded_over_updates() -> None:
    tree = a_tree()
    nlp = key(tree, "nlp")
    assert (tree.is_parent(nlp), tree.is_folded(nlp)) == (True, False)
    assert tree.fold(nlp) is True
    assert shown(tree) == ["root", "nlp", "vision", "ann"]
    assert (tree.is_folded(nlp), tree.place(key(tree, "nlp", "bob"))) == (True, None)
    tree.take(tuple(replace(row, running=1) for row in TWO_ACCOUNTS))
    assert shown(tree) == ["root", "nlp", "vision", "ann"]
    tree.fold(nlp)
    assert shown(tree) == ["root", "nlp", "ann", "bob", "vision", "ann"]
    assert tree.fold(key(tree, "nlp", "ann")) is False


@pytest.mark.req("UI-09")
def test_an_account_whose_users_are_removed_is_no_longer_folded() -> None:
    tree = a_tree()
    tree.fold(key(tree, "vision"))
    tree.take(TWO_ACCOUNTS[:5])
    tree.take(TWO_ACCOUNTS)
    assert shown(tree)[-2:] == ["vision", "ann"]


@pytest.mark.req("UI-09")
def test_all_accounts_below_root_are_folded_and_unfolded_at_once() -> None:
    tree = a_tree()
    tree.fold_all()
    assert shown(tree) == ["root", "nlp", "vision"]
    tree.fold_all()
    assert len(shown(tree)) == len(TWO_ACCOUNTS)
    tree.fold(key(tree, "nlp"))
    tree.fold_all()
    assert len(shown(tree)) == len(TWO_ACCOUNTS)


@pytest.mark.req("UI-09", "UI-20")
def test_a_filter_shows_the_matching_rows_with_the_accounts_above_them_and_nothing_folded() -> None:
    tree = a_tree()
    tree.fold_all()
    tree.filter_by("bob")
    assert shown(tree) == ["root", "nlp", "bob"]
    assert not tree.is_folded(key(tree, "nlp"))
    with pytest.raises(FilterError):
        tree.filter_by("cards>many")
    assert shown(tree) == ["root", "nlp", "bob"]
    tree.filter_by("")
    assert shown(tree) == ["root", "nlp", "vision"]


@pytest.mark.req("UI-09")
def test_usage_counts_for_the_user_and_every_account_above() -> None:
    tree = a_tree()
    day = [Millis(NOW - 2 * 24 * HOUR), Millis(NOW - 24 * HOUR), NOW]
    tree.spend(
        Spending(
            tuple(day),
            (
                (UsageSum("ann", "nlp", "", "normal", 1000 * HOUR, 0), UsageSum("", "nlp", "", "normal", 10 * HOUR, 0)),
                (UsageSum("ann", "vision", "", "normal", 200 * HOUR, 0), UsageSum("eve", "nlp", "", "", HOUR, 0)),
            ),
        )
    )
    held = [(tree.held(row.association.key) // HOUR, row.association) for row in TWO_ACCOUNTS]
    assert [amount for amount, _ in held] == [1211, 1011, 1000, 0, 200, 200]
    assert tree.days == 2


@pytest.mark.req("UI-09")
def test_usage_of_an_account_that_is_not_in_the_tree_counts_for_none() -> None:
    tree = a_tree()
    edges = (Millis(NOW - HOUR), NOW)
    tree.spend(Spending(edges, ((UsageSum("ann", "gone", "", "normal", HOUR, 0),),)))
    assert {tree.held(row.association.key) for row in TWO_ACCOUNTS} == {0}


def panel(tree: AccountTree, account: str, user: str = "") -> list[str]:
    row = tree.row(key(tree, account, user))
    return [plain(each).rstrip() for each in place_answer(row, tree, {}, WIDE)]


@pytest.mark.req("UI-09", "UI-02")
def test_the_panel_adds_the_card_hours_of_recent_days_where_they_are_known() -> None:
    tree = a_tree()
    assert not any("card-hours" in each for each in panel(tree, "nlp"))
    tree.spend(Spending((Millis(NOW - HOUR), NOW), ((UsageSum("ann", "nlp", "", "normal", 3000 * HOUR, 0),),)))
    assert any(each.endswith(" 3 card-hours in the last 1 day") for each in panel(tree, "nlp", "ann"))
    assert any(each.endswith(" 0 card-hours in the last 1 day") for each in panel(tree, "nlp", "bob"))


@pytest.mark.req("UI-09", "UI-02")
def test_the_panel_of_a_user_names_the_account_from_which_its_qos_come() -> None:
    rows = (
        replace(ROWS[0], association=replace(ROWS[0].association, qos=("normal",))),
        replace(ROWS[1], association=replace(ROWS[1].association, qos=("high", "low"), default_qos="low")),
        replace(ROWS[2], association=replace(ROWS[2].association, qos=())),
    )
    tree = a_tree(rows)
    text = "\n".join(panel(tree, "vision", "alice"))
    assert "high, low (as vision)" in text
    assert "shares as account vision itself does." in text
    assert "its jobs" in text
    assert "high, low; low by default" in "\n".join(panel(tree, "vision"))
    assert "is above all accounts." in "\n".join(panel(tree, "root"))
    assert "fold" in panel(tree, "root")[0]
    assert list(place_answer(None, tree, {}, WIDE)) == []


@pytest.mark.req("UI-09", "SC-01")
@pytest.mark.parametrize(
    ("level_fs", "words"),
    [
        (inf, "nothing used yet, so it comes first on its level"),
        (0.99, "LevelFS 0.99: more than its share, so its jobs come later"),
        (1.0, "LevelFS 1: less than its share, so its jobs come earlier"),
    ],
)
def test_the_panel_says_what_the_usage_means_for_the_order_of_jobs(level_fs: float, words: str) -> None:
    above = [TWO_ACCOUNTS[0]]
    lines = [plain(each) for each in account_answer(replace(TWO_ACCOUNTS[1], level_fs=level_fs), above, {}, WIDE)]
    assert any(each.endswith(words) for each in lines), lines


@pytest.mark.req("UI-09")
def test_a_tree_without_accounts_shows_how_to_add_them_or_why_the_user_may_not() -> None:
    assert a_tree(TWO_ACCOUNTS[:1]).only_root
    assert not a_tree().only_root
    text = "\n".join(plain(each) for each in first_account_lines({"command": ";"}, locked=""))
    assert ";accounts add vision --shares 60" in text
    locked = "\n".join(plain(each) for each in first_account_lines({}, locked="Only administrators change accounts."))
    assert "Only administrators change accounts." in locked
    assert "accounts add" not in locked
