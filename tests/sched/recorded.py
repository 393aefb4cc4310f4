"""What a real Slurm was asked and printed (tests/sched/sprio/README.md), as this scheduler's own values."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from cockpit.model.accounts import Accounts, Association, Qos, Usage
from cockpit.model.cluster import Cluster, Partition, Priority, PriorityFlag, PriorityKind, Weights
from cockpit.model.ids import JobId, Millis, UserName
from cockpit.model.job import Job, Submitter
from cockpit.model.node import Node
from cockpit.model.spec import DAY_SECONDS, NodeSpec
from cockpit.sched.priority.priority_context import PriorityContext
from cockpit.sched.priority.share_tree import ShareTree
from tests.sched.world import cards, node, spec_of

FOLDER = Path(__file__).with_name("sprio")
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))

NODES: dict[str, Node] = {
    each.name: each
    for each in (
        node("n1", cards(4, "a100"), cpus=8, memory_mib=64_000),
        node("n2", cards(4, "a100"), cpus=8, memory_mib=64_000),
        node("n3", cards(8, "h100"), cpus=16, memory_mib=128_000),
        node("n4", cpus=8, memory_mib=32_000),
    )
}
PARTITIONS = (
    Partition(name="gpu", nodes=("n1", "n2", "n3"), priority_job_factor=100),
    Partition(name="batch", nodes=("n1", "n2", "n3", "n4"), priority_job_factor=50),
    Partition(name="debug", nodes=("n4",), priority_job_factor=10),
)
EXCLUSIVE = "53"
"""The one job in each run that asked for whole nodes."""


class Row(NamedTuple):
    """One line of `sshare -a -l -P`."""

    association: Association
    usage: float
    effective: float
    fairshare: float | None
    level: float | None


class Printed(NamedTuple):
    """One line of sprio."""

    job: Job
    partition: str
    columns: tuple[str, ...]
    """PRIORITY, AGE, ASSOC, FAIRSHARE, JOBSIZE, PARTITION, QOS, SITE, TRES, NICE."""


class Recorded:
    def __init__(self, name: str) -> None:
        self._data = json.loads((FOLDER / f"{name}.json").read_text())
        self._config = self._data["cfg"]

    @cached_property
    def cluster(self) -> Cluster:
        config = self._config
        tres = (pair.split("=") for pair in config["PriorityWeightTRES"].split(","))
        weights = Weights(
            age=int(config["PriorityWeightAge"]),
            assoc=int(config["PriorityWeightAssoc"]),
            fairshare=int(config["PriorityWeightFairShare"]),
            job_size=int(config["PriorityWeightJobSize"]),
            partition=int(config["PriorityWeightPartition"]),
            qos=int(config["PriorityWeightQOS"]),
            tres={name.lower(): float(weight) for name, weight in tres},
        )
        assert config["PriorityMaxAge"] == "1-00:00:00"
        priority = Priority(
            kind=PriorityKind.MULTIFACTOR,
            weights=weights,
            flags=tuple(PriorityFlag(flag) for flag in config["PriorityFlags"].split(",") if flag),
            favor_small=config["PriorityFavorSmall"].lower() == "yes",
            max_age_seconds=DAY_SECONDS,
            dampening_factor=int(config["FairShareDampeningFactor"]),
        )
        return Cluster(partitions=PARTITIONS, priority=priority)

    @cached_property
    def rows(self) -> list[Row]:
        fair_tree = PriorityFlag.NO_FAIR_TREE not in self.cluster.priority.flags
        rows, above = [], [""]
        for account, user, shares, _, usage, _, effective, fairshare, *more in self._data["rows"]:
            name, depth = account.strip(), len(account) - len(account.lstrip())
            above[depth:] = [name]
            association = Association(
                account=name,
                user=user,
                parent=above[depth - 1] if depth and not user else "",
                shares=None if shares == "parent" else int(shares or 1),
                priority=self._data["assoc"][f"{name}/{user}"],
            )
            level = float(more[0]) if fair_tree and more[0] else None
            rows.append(
                Row(association, float(usage), float(effective), float(fairshare) if fairshare else None, level)
            )
        return rows

    @cached_property
    def accounts(self) -> Accounts:
        return Accounts(
            associations={row.association.key: row.association for row in self.rows},
            qos={name: Qos(name=name, priority=priority) for name, priority in self._data["qos"].items()},
        )

    @property
    def raw_rows(self) -> list[list[str]]:
        """The lines of sshare, as printed."""
        return self._data["rows"]

    @property
    def usage(self) -> dict[str, Usage]:
        return {row.association.key: Usage(row.usage) for row in self.rows}

    @property
    def scale(self) -> PriorityContext:
        return PriorityContext(self.cluster, self.accounts, NODES)

    @property
    def tree(self) -> ShareTree:
        return ShareTree(self.accounts)

    @property
    def shares(self) -> dict[str, float]:
        """The printed fair shares."""
        return {row.association.key: row.fairshare for row in self.rows if row.fairshare is not None}

    @cached_property
    def lines(self) -> list[Printed]:
        return [Printed(self._job(each), each["part"], tuple(each["sprio"])) for each in self._data["jobs"]]

    @property
    def partition_totals(self) -> dict[str, dict[str, float]]:
        return self._data["part_tres"]

    def _job(self, line: dict) -> Job:
        asked, tres = line["inputs"], line["inputs"]["tres"]
        nodes = asked["min_nodes"]
        (model,) = [name.partition(":")[2] for name in tres if ":" in name] or [""]
        each = NodeSpec(
            cpus=int(tres["cpu"]) // nodes,
            memory_mib=int(tres["mem"]) // nodes,
            card_milli=int(1000 * tres.get("gres/gpu", 0)) // nodes,
            card_models=(model,) if model else (),
        )
        return Job(
            id=JobId(int(line["job"])),
            spec=spec_of(
                each,
                nodes=nodes,
                limit=60 * asked["timelimit"],
                nice=int(line["sprio"][9]),
                exclusive=line["job"] == EXCLUSIVE,
            ),
            submitter=Submitter(UserName(asked["user"]), 1000, 1000, (1000,), "/home"),
            project=asked["user"],
            submitted_at=Millis(0),
            state_since=Millis(0),
            account=asked["account"],
            qos=asked["qos"],
            partitions=(line["part"],),
            accrues_from=Millis(int(1000 * asked["accrue"])),
            site_factor=int(line["sprio"][7]),
        )
