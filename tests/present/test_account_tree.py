"""The tree of accounts that a view shows: what it takes, folds and filters."""

from __future__ import annotations

from datetime import UTC

import pytest
from msgspec.structs import replace

from cockpit.present.columns import Context
from cockpit.present.tables.accounts import AccountTree
from tests.doubles.account_tree import account_tree
from tests.doubles.samples import NOW

ROWS = account_tree().rows


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
