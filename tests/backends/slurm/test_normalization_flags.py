from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.backends.slurm.normalization_flags import normalization_flags, with_priority_flags
from cockpit.model.cluster import PriorityFlag
from cockpit.model.priority import Breakdown, FactorName

if TYPE_CHECKING:
    from cockpit.backends.slurm.backend import SlurmBackend
    from cockpit.backends.slurm.mapping.cluster import ClusterLists

ALL = PriorityFlag.NO_NORMAL_ALL


async def with_flags(recorded: SlurmBackend, *flags: PriorityFlag) -> ClusterLists:
    """The recorded cluster, which normalises everything, as if it said that."""
    everything = await recorded._reading.everything(closely=False)
    return everything._replace(rules=with_priority_flags(everything.rules, flags))


def raw_where(told: Breakdown, name: FactorName, factor: float) -> Breakdown:
    parts = [replace(part, contribution=part.weight * factor) if part.name is name else part for part in told.parts]
    return replace(told, parts=tuple(parts))


@pytest.mark.req("SL-30", "SC-24")
async def test_values_printed_normalized_are_so_whatever_the_flag(recorded: SlurmBackend) -> None:
    printed = await recorded._reading.priorities()
    told = normalization_flags(await with_flags(recorded, PriorityFlag.MAX_TRES, ALL), printed)
    assert told == (PriorityFlag.MAX_TRES,)
    without = await with_flags(recorded, PriorityFlag.MAX_TRES)
    assert normalization_flags(without, {}) == (PriorityFlag.MAX_TRES,)


@pytest.mark.req("SL-30", "SC-24")
async def test_values_printed_raw_are_raw_and_no_others(recorded: SlurmBackend) -> None:
    everything = await with_flags(recorded, ALL)
    factors = {each.name: float(each.priority_job_factor) for each in everything.rules.partitions}
    raw = {
        job: tuple(raw_where(each, FactorName.PARTITION, factors[each.partition]) for each in told)
        for job, told in (await recorded._reading.priorities()).items()
    }
    assert normalization_flags(everything, raw) == (PriorityFlag.NO_NORMAL_PART,)


@pytest.mark.req("SL-30")
async def test_without_printed_values_all_factors_are_raw(recorded: SlurmBackend) -> None:
    flags = normalization_flags(await with_flags(recorded, ALL), {})
    assert set(flags) == {
        PriorityFlag.NO_NORMAL_ASSOC,
        PriorityFlag.NO_NORMAL_PART,
        PriorityFlag.NO_NORMAL_QOS,
        PriorityFlag.NO_NORMAL_TRES,
    }
