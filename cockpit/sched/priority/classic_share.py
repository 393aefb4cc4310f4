"""Classic fair share, as before Fair Tree (`Priority.fair_tree`): 2^(-(effective usage / shares) / dampening).

Source: Slurm's `priority_multifactor.c` and "Classic Fairshare Algorithm" in its documentation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from cockpit.model.accounts import Association, AssocKey, Usage
from cockpit.sched.priority.share_tree import ROOT_KEY, ShareTree

_DIVERGENCE = 5.0
"""The factor by which an account that is far from its share affects its users under DEPTH_OBLIVIOUS; a constant in
Slurm."""
_UNUSED = Usage()


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
        total = usage.get(ROOT_KEY, _UNUSED).raw
        self._usage_parts = {
            key: min(1.0, usage.get(key, _UNUSED).raw / total) if total else 0.0 for key in tree.parent
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
        """DEPTH_OBLIVIOUS: R x shares, where R = R of the account x (usage by shares, against its siblings')^k."""
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
