"""The accounts and their users as a tree that folds: which rows are shown, in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present.filters import compile_filter
from cockpit.present.saved import none_saved
from cockpit.present.tables.accounts import ACCOUNTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cockpit.model.accounting import Spending
    from cockpit.model.accounts import AssocKey
    from cockpit.model.view import AccountRow
    from cockpit.present.columns import Context
    from cockpit.present.saved import Saved


class AccountTree:
    """Rows by the keys of their associations, parents before what is below them. While a filter holds, what is above
    a matching row is shown too, and nothing is folded.
    """

    def __init__(self, context: Callable[[], Context], saved: Saved = none_saved) -> None:
        self._context = context
        self._saved = saved
        self._rows: dict[AssocKey, AccountRow] = {}
        self._above: dict[AssocKey, tuple[AssocKey, ...]] = {}
        """Of each row: the accounts above it, root first."""
        self._parents: frozenset[AssocKey] = frozenset()
        self._folded: set[AssocKey] = set()
        self._filter_text = ""
        self._filter = compile_filter("", ACCOUNTS)
        self._held: dict[AssocKey, int] = {}
        self.days = 0
        """Over which `held` counts; 0: nobody has counted yet."""
        self._order: list[AssocKey] = []
        self._places: dict[AssocKey, int] = {}

    def take(self, rows: Sequence[AccountRow]) -> tuple[list[AssocKey], bool]:
        """The rows that differ from the last ones, and whether rows came, went or moved."""
        fresh = {row.association.key: row for row in rows}
        changed = [key for key, row in fresh.items() if self._rows.get(key) != row]
        self._rows, self._above = fresh, dict(_chains(rows))
        self._parents = frozenset(chain[-1] for chain in self._above.values() if chain)
        self._folded &= self._parents
        before = self._order
        self._arrange()
        return changed, self._order != before

    def spend(self, spending: Spending) -> None:
        """What was held lately, for `held`."""
        self.days = len(spending.stretches)
        self._held = {}
        own = {(row.association.account, row.association.user): key for key, row in reversed(self._rows.items())}
        for each in (each for stretch in spending.stretches for each in stretch):
            account, user = own.get((each.account, "")), own.get((each.account, each.user)) if each.user else None
            above = self._above.get(account, ()) if account is not None else ()
            for key in (*above, account, user):
                if key is not None:
                    self._held[key] = self._held.get(key, 0) + each.card_milli_ms

    def held(self, key: AssocKey) -> int:
        """Thousandths of a card × milliseconds, with what is below it."""
        return self._held.get(key, 0)

    def filter_by(self, text: str) -> None:
        """Show what matches. Raises `FilterError`, and then nothing has changed."""
        self._filter = compile_filter(text, ACCOUNTS, saved=self._saved)
        self._filter_text = text
        self._arrange()

    def fold(self, key: AssocKey) -> bool:
        """Hide what is below an account, or show it again; False: there is nothing below it."""
        if key not in self._parents:
            return False
        self._folded ^= {key}
        self._arrange()
        return True

    def fold_all(self) -> None:
        """Only what is right below root, or everything again."""
        below_root = {key for key in self._parents if self._above[key]}
        self._folded = set() if self._folded else below_root
        self._arrange()

    @property
    def order(self) -> Sequence[AssocKey]:
        return self._order

    def place(self, key: AssocKey) -> int | None:
        """Where in `order` the row stands; None when it is gone, folded away or filtered out."""
        return self._places.get(key)

    def row(self, key: AssocKey) -> AccountRow | None:
        return self._rows.get(key)

    def rows(self) -> Sequence[AccountRow]:
        """All of them, shown or not."""
        return list(self._rows.values())

    def above(self, key: AssocKey) -> Sequence[AssocKey]:
        """The accounts above a row, root first."""
        return self._above.get(key, ())

    def is_parent(self, key: AssocKey) -> bool:
        return key in self._parents

    def is_folded(self, key: AssocKey) -> bool:
        return key in self._folded and not self._filter_text

    @property
    def only_root(self) -> bool:
        """Nobody has added anything yet."""
        return all(row.association.account == "root" for row in self._rows.values())

    def _arrange(self) -> None:
        self._order = list(self._shown())
        self._places = {key: place for place, key in enumerate(self._order)}

    def _shown(self) -> Iterator[AssocKey]:
        if self._filter_text:
            found = [row.association.key for row in self._filter.passing(self._rows.values(), self._context())]
            wanted = {*found, *(above for key in found for above in self._above[key])}
            return (key for key in self._rows if key in wanted)
        return (key for key in self._rows if self._folded.isdisjoint(self._above[key]))


def _chains(rows: Sequence[AccountRow]) -> Iterator[tuple[AssocKey, tuple[AssocKey, ...]]]:
    """By the depths of rows that stand in the tree's order."""
    chain: list[AssocKey] = []
    for row in rows:
        del chain[row.depth :]
        yield row.association.key, tuple(chain)
        chain.append(row.association.key)
