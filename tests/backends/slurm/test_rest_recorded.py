"""slurmrestd's answers and the commands' output of the same clusters mean the same."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.backends.slurm.mapping import accounting, accounts, listing, nodes, placements, reservations, rules
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.records import Record
from cockpit.backends.slurm.mapping.rest.questions import question
from cockpit.backends.slurm.wire.calls import Printed
from cockpit.backends.slurm.wire.recorded import RecordedCommands
from cockpit.model.cluster import Partition
from cockpit.model.job import JobState

DATA = Path(__file__).parent / "data" / "rest"
API = {"22.05": 38, "24.11": 42}
FILES = {"slurm/jobs": "jobs", "slurmdb/jobs": "ended", "slurmdb/associations": "associations", "slurmdb/qos": "qos"}
pytestmark = pytest.mark.parametrize("version", API)


def rest(version: str, argv: tuple[str, ...]) -> tuple[Record, ...]:
    """The records in the answer of slurmrestd."""
    asked = question([word.replace(listing.SEPARATOR, "~") for word in argv], API[version], "cock")
    assert asked is not None
    file = DATA / version / f"{FILES.get(f'{asked.area}/{asked.path}', asked.path)}.json"
    return asked.read(msgspec.json.decode(file.read_bytes()))


async def commands(version: str, argv: tuple[str, ...]) -> Printed:
    """What the command itself printed."""
    words = [word.replace(listing.SEPARATOR, "~") for word in argv]
    return await RecordedCommands(version).run(words, seconds=1)


def jobs(records: Iterable[Record]) -> dict[int, Listed]:
    return {each.id: each for each in (Listed(record, UTC) for record in records)}


def lasting(each: Listed) -> tuple[object, ...]:
    """What the seconds between the two recordings have not changed."""
    spec = replace(each.job.spec, output="", begin_at=None, dependencies=(), specs=())
    size = [(one.cpus, one.memory_mib, one.card_milli) for one in each.job.spec.specs]
    return spec, size, each.job.submitter, each.job.submitted_at, each.job.account, each.job.array


@pytest.mark.req("SL-01", "SL-02")
async def test_jobs_are_the_same_jobs(version: str) -> None:
    told = jobs(rest(version, listing.command()))
    printed = jobs(listing.read((await commands(version, listing.command())).stdout, "~"))
    assert len(told) >= 40
    assert {job: lasting(each) for job, each in told.items()} == {job: lasting(printed[job]) for job in told}
    settled = {job: each for job, each in told.items() if each.state == printed[job].state == "FAILED"}
    assert settled
    assert {job: each.job for job, each in settled.items()} == {
        job: replace(printed[job].job, spec=each.job.spec) for job, each in settled.items()
    }


@pytest.mark.req("SL-01", "SL-11")
async def test_nodes_partitions_and_reservations_are_the_same(version: str) -> None:
    def partitions(records: Iterable[Record]) -> list[Partition]:
        return [replace(each, preempt_mode="") for each in rules.partitions_of(records)]

    for argv, key, read in (
        (nodes.COMMAND, nodes.KEY, lambda records: list(nodes.slurm_nodes(records))),
        (reservations.COMMAND, reservations.KEY, lambda records: list(reservations.reservations(records, UTC))),
        (rules.PARTITIONS, rules.PARTITION_KEY, partitions),
    ):
        told = read(rest(version, argv))
        wanted = read((await commands(version, argv)).blocks(key))
        if argv == rules.PARTITIONS:  # which is the default one, v0.0.42 does not say
            told, wanted = ([replace(each, default=False) for each in found] for found in (told, wanted))
        assert told
        assert told == wanted


@pytest.mark.req("SL-01")
async def test_accounts_and_qos_are_the_same(version: str) -> None:
    def read(
        assoc: Iterable[Record], qos: Iterable[Record], shares: Iterable[Record]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        found = accounts.accounts(assoc, qos, shares, "cock")
        tree = {key: replace(each, qos=tuple(sorted(each.qos))) for key, each in found.associations.items()}
        return tree, dict(found.qos)

    asked = (accounts.ASSOCIATIONS, accounts.QOS, accounts.SHARES)
    printed = [(await commands(version, each)).rows() for each in asked]
    assert read(*(rest(version, each) for each in asked)) == read(*printed)


@pytest.mark.req("SL-01")
async def test_shares_are_shown_where_slurmrestd_has_them(version: str) -> None:
    told = {row.key: row for row in accounts.share_lines(rest(version, accounts.SHARES))}
    printed = {row.key: row for row in accounts.share_lines((await commands(version, accounts.SHARES)).rows())}
    assert len(told) >= 8
    for key, row in told.items():
        assert (row.parent, row.depth, row.shares) == (printed[key].parent, printed[key].depth, printed[key].shares)
        if API[version] >= 40:
            assert (row.raw_usage, row.level_fs) == (
                printed[key].raw_usage,
                pytest.approx(printed[key].level_fs, abs=1e-5),
            )


@pytest.mark.req("SL-01")
async def test_a_running_job_has_the_same_cards(version: str) -> None:
    told = placements.details(rest(version, placements.DETAIL))
    text = (await commands(version, placements.DETAIL)).stdout
    printed = placements.details(placements.allocation_records(text))
    placed = {job: parts for job, parts in told.items() if any(part.slices for part in parts.values())}
    both = placed.keys() & printed.keys()
    assert len(both) >= 2
    assert {job: placed[job] for job in both} == {job: printed[job] for job in both}


@pytest.mark.req("SL-01")
async def test_ended_jobs_are_the_same(version: str) -> None:
    def read(records: Iterable[Record]) -> dict[int, tuple[object, ...]]:
        return {
            job.id: (job.spec.name, job.state, job.submitted_at, job.attempt, job.exit, used)
            for job, used, _ in accounting.ended_jobs(records, UTC)
        }

    command = accounting.command("now-1days")
    told = read(rest(version, command))
    printed = read(accounting.read((await commands(version, command)).stdout, "~"))
    both = told.keys() & printed.keys()
    assert len(both) >= 2
    # slurmrestd of 22.05 reports no exit code of a failed job, which is not the code 0
    unknown = {job for job in both if told[job][4] is None}
    assert {told[job][1] for job in unknown} == ({JobState.ERROR} if version == "22.05" else set())
    assert {job: told[job] for job in both - unknown} == {job: printed[job] for job in both - unknown}


@pytest.mark.req("SL-01", "SL-10")
def test_steps_have_the_number_of_their_tasks(version: str) -> None:
    fields = (*accounting.FIELDS, "NTasks")
    steps = [each for each in rest(version, accounting.command("now", fields=fields)) if "." in each["JobID"]]
    assert {each["NTasks"] for each in steps} == {"1"}
