"""Lists that lack what other lists name: cut, or left out on purpose."""

from __future__ import annotations

from random import Random

import pytest

from cockpit.backends.slurm.list_checks import check_inventory, complete_list
from cockpit.backends.slurm.mapping.cross_checks import (
    CrossCheck,
    of_associations,
    of_licences,
    of_priorities,
    of_reservations,
    of_shares,
)
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.backends.slurm.wire.calls import DATABASE_PROGRAMS, NOTHING_ABSENT, Garbled, Printed
from cockpit.model.ids import Millis
from tests.backends.slurm.test_values import a_record

LIST = ("scontrol", "-o", "show", "licenses")


def waiting(job: str, **fields: str) -> Listed:
    return Listed(a_record(**{"JobID": job, "State": "PENDING", "Reason": "Priority", **fields}))


@pytest.mark.req("TR-04", "SL-11")
def test_licences_are_those_of_the_configuration() -> None:
    check = of_licences({"Licenses": "matlab:4,fluent@site:2"})
    assert check.lacks("LicenseName=matlab Total=4 Used=0\n") == {"fluent@site"}
    assert check.lacks("LicenseName=matlab Total=4\nLicenseName=fluent@site Total=2\n") == set()
    assert check.alone("matlab") == (*LIST, "matlab")
    assert of_licences({"Licenses": "(null)"}).lacks("No licenses configured in Slurm.\n") == set()


@pytest.mark.req("TR-04")
def test_reservations_are_those_that_live_jobs_name() -> None:
    ended = Listed(a_record(JobID="9", State="COMPLETED", Reservation="over"))
    check = of_reservations([waiting("1", Reservation="maint"), waiting("2", Reservation="(null)"), ended])
    assert check.lacks("No reservations in the system\n") == {"maint"}
    assert check.lacks("ReservationName=maint StartTime=2026-11-21T08:00:00\n") == set()
    assert check.alone("maint")[-2:] == ("reservation", "maint")


@pytest.mark.req("TR-04", "SL-12")
def test_priorities_are_those_of_jobs_that_wait_for_their_turn() -> None:
    held, begins = waiting("3", Reason="JobHeldUser"), waiting("4", Reason="BeginTime")
    part = waiting("5", HetJobID="5", HetJobOffset="0")
    array = waiting("8", ArrayJobID="7", ArrayTaskID="4-9")
    check = of_priorities([waiting("1"), waiting("2", Reason="Resources"), held, begins, part, array])
    assert check.lacks("JOBID|PARTITION\n  1|batch\n") == {"2", "7"}
    assert check.alone("2")[-1] == "--jobs=2"


@pytest.mark.req("TR-04", "SL-12")
def test_associations_and_shares_name_each_other() -> None:
    associations = "Cluster|Account|User|Partition\nhere|root||\nhere|nlp||\nhere|nlp|ann|\nother|nlp|ben|\n"
    shares = "Account|User|RawShares\nroot||\n nlp||1\n  nlp|ann|1\n"
    assert of_shares(associations, "here").lacks(shares) == set()
    assert of_associations(shares, "here").lacks(associations) == set()
    cut = "".join(shares.splitlines(keepends=True)[:-1])
    assert of_shares(associations, "here").lacks(cut) == {"nlp/ann"}
    assert of_associations(shares, "here").lacks(associations.replace("here|nlp|ann|\n", "")) == {"nlp/ann"}
    assert of_shares(associations, "here").alone("nlp/ann")[-2:] == ("--accounts=nlp", "--users=ann")
    assert of_shares(associations, "here").alone("nlp/")[-1] == "--accounts=nlp"
    assert of_associations(shares, "here").alone("nlp/ann")[-2:] == ("account=nlp", "user=ann")
    assert of_associations(shares, "here").alone("nlp/")[-1] == "account=nlp"


class Cluster:
    """Answers each question with the next of its texts, the last one again and again."""

    name, on_this_disk, absent, database_programs = "paper", False, NOTHING_ABSENT, DATABASE_PROGRAMS

    def __init__(self, **answers: list[str]) -> None:
        self.answers, self.asked = answers, 0

    async def run(self, argv, *, seconds, stdin=b"", reading=True) -> Printed:
        self.asked += 1
        texts = self.answers["alone" if len(argv) > len(LIST) else "listed"]
        return Printed(texts.pop(0) if len(texts) > 1 else texts[0], "", 0)


def both(*names: str) -> str:
    return "".join(f"LicenseName={name} Total=4 Used=0\n" for name in names)


async def checked(cluster: Cluster, absent: set[str]) -> Printed:
    answers = Answers(cluster, lambda: Millis(0), Random(1))
    check: CrossCheck = of_licences({"Licenses": "a:4,b:4"})
    return await complete_list(answers, LIST, await answers.ask(LIST, 60.0), check, absent)


@pytest.mark.req("TR-04")
async def test_a_list_that_lacks_a_name_is_asked_for_again_and_then_the_name_alone() -> None:
    absent: set[str] = set()
    whole = Cluster(listed=[both("a", "b")], alone=[""])
    assert (await checked(whole, absent)).stdout == both("a", "b")
    assert whole.asked == 1
    passing = Cluster(listed=[both("a"), both("a", "b")], alone=[""])
    assert (await checked(passing, absent)).stdout == both("a", "b")
    with pytest.raises(Garbled, match="The answer of scontrol show licenses is not whole: it leaves out b"):
        await checked(Cluster(listed=[both("a")], alone=[both("b")]), absent)
    assert not absent


@pytest.mark.req("TR-04", "SL-03")
async def test_an_intended_omission_is_checked_once() -> None:
    absent: set[str] = set()
    cluster = Cluster(listed=[both("a")], alone=["No licenses configured in Slurm.\n"])
    assert (await checked(cluster, absent)).stdout == both("a")
    assert (cluster.asked, absent) == (3, {"b"})
    assert (await checked(cluster, absent)).stdout == both("a")
    assert cluster.asked == 4


NODES = "NodeName=n1 Partitions=gpu\nNodeName=n2 Partitions=gpu,batch\n"
PARTITIONS = "PartitionName=gpu Nodes=n[1-2]\nPartitionName=batch Nodes=n2\n"


class Inventory:
    """Answers questions about one name; without an answer the controller does not know it."""

    name, on_this_disk, absent, database_programs = "paper", False, NOTHING_ABSENT, DATABASE_PROGRAMS

    def __init__(self, **alone: str) -> None:
        self.alone, self.asked = alone, []

    async def run(self, argv, *, seconds, stdin=b"", reading=True) -> Printed:
        self.asked.append(tuple(argv))
        told = self.alone.get(argv[-1])
        return Printed(told, "", 0) if told else Printed("", f"{argv[-2]} {argv[-1]} not found", 1)


async def inventory(cluster: Inventory, nodes: str = NODES, partitions: str = PARTITIONS) -> None:
    await check_inventory(Answers(cluster, lambda: Millis(0), Random(1)), nodes, partitions, 60.0)


@pytest.mark.req("TR-04", "SL-11")
async def test_lists_of_nodes_and_partitions_that_name_each_other_are_not_asked_about() -> None:
    cluster = Inventory()
    await inventory(cluster)
    assert cluster.asked == []


@pytest.mark.req("TR-04", "SL-11")
@pytest.mark.parametrize(
    ("lists", "alone", "said"),
    [
        (
            {"nodes": "NodeName=n2 Partitions=gpu,batch\n"},
            {"n1": "NodeName=n1 State=IDLE\n"},
            "node is not whole: .* n1",
        ),
        ({"nodes": "NodeName=n2 Partitions=gpu,batch\n"}, {"n1": "NodeName=n1 State=IDLE+FUTURE\n"}, ""),
        ({"nodes": "NodeName=n2 Partitions=gpu,batch\n"}, {}, ""),
        ({"nodes": "NodeName=n2 Partitions=gpu,batch\n"}, {"n1": "NodeName=n9 State=IDLE\n"}, ""),
        (
            {"partitions": "PartitionName=gpu Nodes=n[1-2]\n"},
            {"batch": "PartitionName=batch State=UP\n"},
            "partition is not whole: .* batch",
        ),
        ({"partitions": "PartitionName=gpu Nodes=n[1-2]\n"}, {}, ""),
    ],
)
async def test_a_missing_node_or_partition_is_asked_for_alone(
    lists: dict[str, str], alone: dict[str, str], said: str
) -> None:
    cluster = Inventory(**alone)
    if said:
        with pytest.raises(Garbled, match=said):
            await inventory(cluster, **lists)
    else:
        await inventory(cluster, **lists)
    ((*_, what, name),) = cluster.asked
    assert (what, name) in {("node", "n1"), ("partition", "batch")}
