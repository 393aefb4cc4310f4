"""Fair Tree: ranks users by how little of their share they used, level by level down the account tree.

Source: Slurm's `fair_tree.c`. The manual says that the children of tied accounts are merged; Slurm does not do that,
because the comparison for it never holds, and real clusters rank accordingly.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from cockpit.model.accounts import Association, AssocKey, Usage
from cockpit.sched.priority.share_tree import ROOT_KEY, ShareTree

Levels = Mapping[AssocKey, float]
"""LevelFS as `sshare -l` prints it: above 1 is under-served, below 1 over-served."""

_NO_LEVEL = 4294967294.0
"""The level of an account with `parent` shares: it has no children in this tree, and ties with no real level
(NO_VAL)."""
_UNUSED = Usage()


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
    ranking.go_through(tree.children.get(ROOT_KEY, []), tied=False)
    return ranking.factors


class _Ranking:
    def __init__(self, tree: ShareTree, level: Levels) -> None:
        self.factors: dict[AssocKey, float] = {}
        self._tree = tree
        self._level = level
        self._rank = tree.user_count
        self._rank_without_ties = tree.user_count

    def go_through(self, siblings: list[Association], *, tied: bool) -> None:
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
                self.go_through(self._tree.children.get(each.key, []), tied=tied)
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
