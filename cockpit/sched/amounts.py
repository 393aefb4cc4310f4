"""Trackable resources as integers: thousandths of Slurm's amounts, so that sums come out the same in any order."""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.model.cluster import Tres
from cockpit.model.ids import NodeName
from cockpit.model.node import Node, Placement
from cockpit.model.spec import NodeSpec
from cockpit.sched.tres import allocated, replicas

Amounts = dict[str, int]
"""By TRES name (`model.cluster.Tres`), in thousandths; absent: none."""

ONE = 1000


def thousandths(amount: float) -> int:
    return round(ONE * amount)


def asked(spec: NodeSpec, nodes: int) -> Amounts:
    """What so many replicas ask for."""
    return _amounts(replicas(spec, nodes))


def held(placement: Placement, nodes: Mapping[NodeName, Node]) -> Amounts:
    """What a placement takes."""
    return _amounts(allocated(placement, nodes))


def _amounts(tres: Tres) -> Amounts:
    return {name: thousandths(amount) for name, amount in tres.items()}
