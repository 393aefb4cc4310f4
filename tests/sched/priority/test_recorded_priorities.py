"""Every figure that real Slurm controllers printed for their queues."""

from __future__ import annotations

import pytest

from cockpit.model.cluster import PriorityFlag
from cockpit.model.ids import Millis
from cockpit.model.priority import Breakdown, FactorName
from cockpit.sched.priority.priority_context import PriorityCalculator, shares_of
from cockpit.sched.priority.share_tree import classic_share, levels, ranked
from cockpit.sched.rules.partitions import nodes_of
from cockpit.sched.rules.tres import capacity
from tests.sched.recorded import NAMES, NODES, Printed, Recorded

COLUMNS = (
    FactorName.AGE,
    FactorName.ASSOC,
    FactorName.FAIRSHARE,
    FactorName.JOB_SIZE,
    FactorName.PARTITION,
    FactorName.QOS,
    FactorName.SITE,
)


@pytest.fixture(params=NAMES)
def recorded(request: pytest.FixtureRequest) -> Recorded:
    return Recorded(request.param)


def as_sprio_prints(found: Breakdown) -> tuple[str, ...]:
    named = {part.name: f"{part.contribution:.0f}" for part in found.parts if not part.tres}
    tres = ",".join(f"{part.tres}={part.contribution:.0f}" for part in found.parts if part.contribution and part.tres)
    return (str(found.total), *(named[name] for name in COLUMNS), tres, str(found.nice))


def moments_of(line: Printed, recorded: Recorded) -> range:
    """When the last pass can have been, to the second, by the printed age of one job."""
    assert line.job.accrues_from is not None
    day, weight = 86_400, recorded.cluster.priority.weights.age
    least, most = ((int(line.columns[1]) + slack) * day / weight for slack in (-0.5, 0.5))
    begin = line.job.accrues_from // 1000
    return range(begin + max(0, int(least) - 1), begin + int(most) + 2)


@pytest.mark.req("SC-24", "SC-01")
def test_every_sprio_column_of_every_job_is_equal(recorded: Recorded):
    """The moment of the last pass is not recorded: there is one at which everything agrees."""
    scale, shares = recorded.scale, recorded.shares

    def wrong(second: int) -> list[tuple[Printed, tuple[str, ...]]]:
        measure = PriorityCalculator(scale, shares, Millis(1000 * second))
        printed = ((line, as_sprio_prints(measure.breakdown(line.job, line.partition))) for line in recorded.lines)
        return [(line, ours) for line, ours in printed if line.columns != ours]

    assert len(recorded.lines) >= 29
    oldest = max(recorded.lines, key=lambda line: int(line.columns[1]))
    assert min((wrong(second) for second in moments_of(oldest, recorded)), key=len) == []


@pytest.mark.req("SC-24", "SC-02")
@pytest.mark.parametrize("name", [name for name in NAMES if "classic" not in name])
def test_fair_tree_ranks_by_the_printed_levels(name: str):
    recorded = Recorded(name)
    levels = dict.fromkeys(recorded.tree.parent, float("inf")) | {
        row.association.key: row.level for row in recorded.rows if row.level is not None
    }
    factors = ranked(recorded.tree, levels)
    assert {key: f"{factor:.6f}" for key, factor in factors.items()} == {
        key: f"{factor:.6f}" for key, factor in recorded.shares.items()
    }


@pytest.mark.req("SC-24", "SC-02")
def test_shares_by_the_printed_usage(recorded: Recorded):
    """Which is truncated and of a later moment: near, not equal."""
    if PriorityFlag.NO_FAIR_TREE in recorded.cluster.priority.flags:
        ours, printed = shares_of(recorded.scale, recorded.usage), recorded.shares
    else:
        ours = levels(recorded.tree, recorded.usage)
        printed = {row.association.key: row.level for row in recorded.rows if row.level is not None}
    assert {key: ours[key] for key in printed} == pytest.approx(printed, rel=0.2)


@pytest.mark.req("SC-02")
def test_classic_factor_of_the_printed_effective_usage():
    """Where usage makes exactly the printed effective usage: accounts right below root."""
    recorded = Recorded("22.05-classic-restart")
    usage = recorded.usage
    total = 1e9
    below = [row for row in recorded.rows if row.association.parent == "root"]
    root = recorded.rows[0].association.key
    usage |= {row.association.key: type(usage[root])(row.effective * total) for row in below}
    usage[root] = type(usage[root])(total)
    factors = classic_share(recorded.tree, usage)
    assert {row.association.key: f"{factors[row.association.key]:.4f}" for row in below} == {
        row.association.key: f"{row.fairshare:.4f}" for row in below
    }


@pytest.mark.req("SC-24", "SC-01")
def test_totals_of_partitions(recorded: Recorded):
    for name, printed in recorded.partition_totals.items():
        found = capacity(nodes_of(recorded.cluster, name, NODES.values()))
        assert {tres: found[tres] for tres in printed if tres != "billing"} == {
            tres: amount for tres, amount in printed.items() if tres != "billing"
        }
