"""Computes the shares, usage and fair share of each account and user, as `sshare` prints them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cockpit.model.accounts import Accounts, AssocKey, Usage
from cockpit.model.cluster import Priority, PriorityFlag
from cockpit.sched.priority.share_tree import ROOT_KEY, ClassicShares, ShareTree, levels, ranked

_UNUSED = Usage()


class FairShareFigures(NamedTuple):
    """The figures of one association; see `view.AccountRow`."""

    norm_shares: float
    norm_usage: float
    effective_usage: float
    level_fs: float | None
    fair_share: float | None


def fair_share_figures(
    accounts: Accounts, usage: Mapping[AssocKey, Usage], priority: Priority
) -> dict[AssocKey, FairShareFigures]:
    """Return the figures of all associations below root."""
    tree = ShareTree(accounts)
    return dict(_by_level(tree, usage) if priority.fair_tree else _classic(tree, usage, priority))


def _by_level(tree: ShareTree, usage: Mapping[AssocKey, Usage]) -> Iterator[tuple[AssocKey, FairShareFigures]]:
    """Yield the figures of Fair Tree: shares, usage, LevelFS and fair share."""
    level = levels(tree, usage)
    factors = ranked(tree, level)
    norm_shares = {ROOT_KEY: 1.0}
    for each in tree.downward():
        key, above = each.key, tree.parent[each.key]
        # with `parent` shares the association has its account's share
        norm_shares[key] = norm_shares[above] if each.shares is None else tree.part(each)
        yield (
            key,
            FairShareFigures(
                norm_shares[key],
                _part(usage, key, ROOT_KEY),
                _part(usage, key, above),
                level[key] if each.shares is not None else None,
                factors.get(key),
            ),
        )


def _classic(
    tree: ShareTree, usage: Mapping[AssocKey, Usage], priority: Priority
) -> Iterator[tuple[AssocKey, FairShareFigures]]:
    """Yield the figures of classic fair share, which has no LevelFS."""
    classic = ClassicShares(
        tree,
        usage,
        priority.dampening_factor,
        depth_oblivious=PriorityFlag.DEPTH_OBLIVIOUS in priority.flags,
    )
    for key, shares in classic.shares.items():
        if key != ROOT_KEY:
            used = _part(usage, key, ROOT_KEY)
            yield key, FairShareFigures(shares, used, classic.effective[key], None, classic.factors[key])


def _part(usage: Mapping[AssocKey, Usage], key: AssocKey, whole: AssocKey) -> float:
    total = usage.get(whole, _UNUSED).raw
    return usage.get(key, _UNUSED).raw / total if total else 0.0
