"""The account tree as fair share sees it: which associations share with each other.

An account with `parent` shares is no level of its own: its children share with its siblings. Source: Slurm's
`assoc_mgr.c` (fs_assoc_ptr, level_shares).
"""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.model.accounts import ROOT, Accounts, Association, AssocKey, assoc_key

ROOT_KEY = assoc_key(ROOT)


class ShareTree:
    """The tree, derived from the accounts alone; usage is passed in separately."""

    def __init__(self, accounts: Accounts) -> None:
        self.user_count = sum(bool(each.user) for each in accounts.associations.values())
        """The number of user associations, root's included, from which Fair Tree's ranks count down."""
        self.parent: dict[AssocKey, AssocKey] = {}
        """The account under which each association shares; root has none."""
        self._accounts = accounts.associations
        self.children: dict[AssocKey, list[Association]] = {}
        """Children by account, in the order in which they were added."""
        for each in accounts.associations.values():
            if (above := _sharing_account(accounts, each)) is not None:
                self.parent[each.key] = above
                self.children.setdefault(above, []).append(each)
        self._sums = {
            account: sum(each.shares or 0 for each in children) for account, children in self.children.items()
        }

    def part(self, each: Association) -> float:
        """Return its part of its siblings' shares; 0 where no sibling has any, or it has `parent` shares."""
        siblings = self._sums[self.parent[each.key]]
        return (each.shares or 0) / siblings if siblings else 0.0

    def sum_at(self, each: Association) -> int:
        """The sum of its own and its siblings' shares."""
        return self._sums[self.parent[each.key]]

    def parts(self, each: Association) -> Iterator[float]:
        """Yield its part of its siblings' shares, then its account's part among that account's siblings, and so on up
        to root."""
        above = self.parent.get(each.key)
        while above is not None:
            yield self.part(each)
            each = self._accounts[above]
            above = self.parent.get(above)

    def downward(self) -> Iterator[Association]:
        """Yield all associations below root, each after the account it shares under."""
        waiting = [ROOT_KEY]
        while waiting:
            for each in self.children.get(waiting.pop(), ()):
                yield each
                if not each.user:
                    waiting.append(each.key)


def _sharing_account(accounts: Accounts, each: Association) -> AssocKey | None:
    """The nearest account above with shares of its own, at the latest root; None for root, and for associations that
    are not connected to it."""
    above = accounts.above(each)
    if not above or above[-1].key != ROOT_KEY:
        return None
    return next((account.key for account in above if account.shares is not None), ROOT_KEY)
