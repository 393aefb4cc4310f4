"""The account tree with its two algorithms of fair share: Fair Tree, and the classic one before it.

The tree says which associations share with each other. An account with `parent` shares is no level of its own: its
children share with its siblings. Sources: Slurm's `assoc_mgr.c` (fs_assoc_ptr, level_shares), `fair_tree.c`, and
`priority_multifactor.c` with "Classic Fairshare Algorithm" in the documentation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from math import inf

from cockpit.model.accounts import ROOT, Accounts, Association, AssocKey, Usage, assoc_key

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
        # once for each account: every child divides by the same sum
        self._sums = {
            account: sum(each.shares or 0 for each in children) for account, children in self.children.items()
        }

    def part(self, each: Association) -> float:
        """Return its part of its siblings' shares; 0 where no sibling has any, or it has `parent` shares."""
        siblings = self._sums[self.parent[each.key]]
        return (each.shares or 0) / siblings if siblings else 0.0

    def sum_at(self, each: Association) -> int:
        """Return the sum of its own and its siblings' shares."""
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
    """Return the nearest account above with shares of its own, at the latest root; None for root, and for associations
    that are not connected to it."""
    above = accounts.above(each)
    if not above or above[-1].key != ROOT_KEY:
        return None
    return next((account.key for account in above if account.shares is not None), ROOT_KEY)


Levels = Mapping[AssocKey, float]
"""LevelFS as `sshare -l` prints it: above 1 is under-served, below 1 over-served."""

_NO_LEVEL = 4294967294.0
"""The level of an account with `parent` shares: it has no children in this tree, and ties with no real level
(NO_VAL)."""
_UNUSED = Usage()


# Fair Tree ranks users by how little of their share they used, level by level down the account tree. The manual says
# that the children of tied accounts are merged. `fair_tree.c` does not do that, because its comparison for it never
# holds, and real clusters rank accordingly; so does this.
def fair_tree(tree: ShareTree, usage: Mapping[AssocKey, Usage]) -> dict[AssocKey, float]:
    """Return the fair-share factor of every user association."""
    return ranked(tree, levels(tree, usage))


def levels(tree: ShareTree, usage: Mapping[AssocKey, Usage]) -> dict[AssocKey, float]:
    """Return LF = S/U for each association: its part of its siblings' shares over its part of the usage above it.

    0 without shares; infinity with shares but without usage, and for a user with `parent` shares.
    """
    levels_by_key: dict[AssocKey, float] = {}
    for each in tree.downward():
        above = usage.get(tree.parent[each.key], _UNUSED).raw
        used = usage.get(each.key, _UNUSED).raw / above if above else 0.0
        levels_by_key[each.key] = _level(tree, each, used)
    return levels_by_key


def ranked(tree: ShareTree, level: Levels) -> dict[AssocKey, float]:
    """Return each user's rank over the number of users: depth first, siblings by level from the highest, users before
    accounts on a tie."""
    ranking = _Ranking(tree, level)
    ranking.rank_siblings(tree.children.get(ROOT_KEY, []), tied=False)
    return ranking.factors


class _Ranking:
    def __init__(self, tree: ShareTree, level: Levels) -> None:
        self.factors: dict[AssocKey, float] = {}
        self._tree = tree
        self._level = level
        self._rank = tree.user_count
        self._rank_without_ties = tree.user_count

    def rank_siblings(self, siblings: list[Association], *, tied: bool) -> None:
        """Rank these siblings. `tied`: the account above ties with what came before it, and so does the first of
        these."""
        # users before accounts on a tie, as Slurm sorts them; an account passes its tie on to its best child
        previous: float | None = None
        for each in sorted(siblings, key=lambda each: (-self._level[each.key], not each.user)):
            level = self._level[each.key]
            if previous is not None:
                tied = level == previous
            if each.user:
                self._give_rank(each.key, tied=tied)
            else:
                self.rank_siblings(self._tree.children.get(each.key, []), tied=tied)
            previous = level

    def _give_rank(self, user: AssocKey, *, tied: bool) -> None:
        """Give the user a rank. Tied users share a rank; the next one that is not tied falls by as many as there
        were."""
        if not tied:
            self._rank = self._rank_without_ties
        self.factors[user] = self._rank / self._tree.user_count
        # counts every user, tied or not, so that the next rank skips as many as shared the last one
        self._rank_without_ties -= 1


def _level(tree: ShareTree, each: Association, used: float) -> float:
    if each.shares is None:
        return inf if each.user else _NO_LEVEL
    part = tree.part(each)
    if not part:
        return 0.0
    return part / used if used else inf


_DIVERGENCE = 5.0
"""The factor by which an account that is far from its share affects its users under DEPTH_OBLIVIOUS; a constant in
Slurm."""
_UNUSED_SHARE = Usage()


# Classic fair share is 2^(-(effective usage / shares) / dampening).
def classic_share(
    tree: ShareTree, usage: Mapping[AssocKey, Usage], *, dampening: int = 1, depth_oblivious: bool = False
) -> dict[AssocKey, float]:
    """Return the fair-share factor of every association, accounts included."""
    return ClassicShares(tree, usage, dampening, depth_oblivious=depth_oblivious).factors


class ClassicShares:
    """Computes shares, usage and factors in one walk down the tree: each node needs those of the node above."""

    def __init__(
        self, tree: ShareTree, usage: Mapping[AssocKey, Usage], dampening: int, *, depth_oblivious: bool
    ) -> None:
        self._tree = tree
        self._dampening = max(1, dampening)
        total = usage.get(ROOT_KEY, _UNUSED_SHARE).raw
        self._usage_parts = {
            key: min(1.0, usage.get(key, _UNUSED_SHARE).raw / total) if total else 0.0 for key in tree.parent
        }
        """Each association's part of all usage."""
        self.shares = {ROOT_KEY: 1.0}
        """Each association's part of all shares."""
        self.effective = {ROOT_KEY: 1.0}
        """Each association's effective usage, from which its factor follows."""
        self.factors = {ROOT_KEY: self._factor(ROOT_KEY)}
        effective = self._obliviously if depth_oblivious else self._among_siblings
        for each in tree.downward():
            self._add(each, effective)

    def _add(self, each: Association, effective: Callable[[Association], float]) -> None:
        key, above = each.key, self._tree.parent[each.key]
        # `parent` shares: the association uses its account's share and usage as its own
        if each.shares is None:
            self.shares[key], self.effective[key] = self.shares[above], self.effective[above]
        else:
            self.shares[key] = math.prod(self._tree.parts(each))
            self.effective[key] = self._usage_parts[key] if above == ROOT_KEY else effective(each)
        self.factors[key] = self._factor(key)

    def _factor(self, key: AssocKey) -> float:
        shares = self.shares[key]
        return math.pow(2.0, -(self.effective[key] / shares / self._dampening)) if shares > 0 else 0.0

    def _among_siblings(self, each: Association) -> float:
        """Return its own usage, and its part of what its siblings used: Ua + (Ue of the account - Ua) x s / sum
        of s."""
        above = self.effective[self._tree.parent[each.key]]
        siblings = self._tree.sum_at(each)
        if not siblings:
            return above
        own = self._usage_parts[each.key]
        return own + (above - own) * ((each.shares or 0) / siblings)

    def _obliviously(self, each: Association) -> float:
        """Return the effective usage under DEPTH_OBLIVIOUS: R x shares, where R = R of the account x (usage by shares,
        against that of its siblings)^k."""
        key, above = each.key, self._tree.parent[each.key]
        # a ratio or a logarithm of 0 is not defined, so actual usage counts as it is
        if not (self.shares[key] and self.shares[above] and self.effective[above] and self._usage_parts[key]):
            return self._usage_parts[key]
        ratio_above = self.effective[above] / self.shares[above]
        siblings = sum(self._usage_parts[other.key] for other in self._tree.children[above] if other.shares is not None)
        ratio = (self._usage_parts[key] / self.shares[key]) / (siblings / self.shares[above])
        return ratio_above * math.pow(ratio, _exponent(ratio_above, ratio)) * self.shares[key]


def _exponent(above: float, own: float) -> float:
    """Return k, which falls from 1 to 0 as the account moves away from its share while its user would bring it back."""
    # both above their share, or both below: the user is judged by the full ratio
    if math.log(above) * math.log(own) >= 0:
        return 1.0
    return 1 / (1 + (_DIVERGENCE * math.log(above)) ** 2)
