"""Finds out whether a list that is complete by its form also has everything that the controller knows.

A list that is cut exactly between two records looks like a shorter list. The previous list and the lists of other
commands reveal it. Then the controller is asked once more, in another way, before a missing entry counts as gone.

The list of jobs is checked in these steps:

1. `is_doubtful`: has a live job vanished sooner than Slurm forgets ended jobs (MinJobAge)? Without a previous list, or
   when nothing is left of it: does sdiag count more pending and running jobs?
2. If so, `live_jobs` reads the live jobs from scontrol, and squeue runs again (`Reading`).
3. `left_out`: jobs that scontrol has and squeue still lacks make the answer `Garbled`; nothing of it is shown.

Nodes, partitions and the optional lists are checked by `check_inventory` and `complete_list`: one list must have the
names that another mentions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from cockpit.backends.slurm.mapping import placements, states, values
from cockpit.backends.slurm.mapping.records import Record, job_blocks, records_of_key, words
from cockpit.backends.slurm.mapping.values import hosts
from cockpit.backends.slurm.wire.calls import Failed, Garbled, command_of
from cockpit.errors import CockpitError
from cockpit.model.job import ENDED

if TYPE_CHECKING:
    from cockpit.backends.slurm.mapping.cross_checks import CrossCheck
    from cockpit.backends.slurm.mapping.jobs import Listed
    from cockpit.backends.slurm.wire.answers import Answers
    from cockpit.backends.slurm.wire.calls import Printed

STATISTICS = ("sdiag",)
FRESH_SECONDS = 10.0
MOST_CONFIRMED = 5
_COUNTED = re.compile(
    r"^Job states ts:.*\((?P<at>\d+)\)\s+Jobs pending:\s*(?P<pending>\d+)\s+Jobs running:\s*(?P<running>\d+)",
    re.MULTILINE,
)
_JOB = re.compile(r"JobId=(\d+)")

Records = Mapping[str, "Listed"]
"""Records of squeue, by Slurm's number of the job."""


class ListComparison(NamedTuple):
    """A list of jobs and the one before it."""

    records: Records
    before: Records
    elapsed_seconds: float
    """Seconds between the two lists."""


async def is_doubtful(answers: Answers, look: ListComparison, conf: Record) -> bool:
    """Return whether jobs may be missing from the list.

    They may when a live job has vanished that Slurm cannot have forgotten yet (MinJobAge), or when the controller
    counts more jobs. sdiag is asked only where there is no previous list, or where nothing of it is left.
    """
    # One such job is enough, so the generator stops at the first.
    vanished = (number for number, each in look.before.items() if each.kind not in ENDED and number not in look.records)
    if next(vanished, None) is not None:
        return look.elapsed_seconds < (values.seconds(conf.get("MinJobAge", "")) or 0)
    # With two lists that share jobs the comparison above is the better evidence, and sdiag costs another call.
    if (look.before and look.records) or _hides_jobs(conf):
        return False
    try:
        printed = await answers.ask(STATISTICS, FRESH_SECONDS)
    except CockpitError:
        return False  # squeue itself answered, and not every site lets users run sdiag
    return _fewer(look.records.values(), printed.stdout)


def _hides_jobs(conf: Record) -> bool:
    """Return whether jobs are private: then sdiag also counts jobs that the user may not see."""
    return "jobs" in conf.get("PrivateData", "").split(",")


def _fewer(listed: Iterable[Listed], statistics: str) -> bool:
    """Return whether fewer of the listed jobs were pending or running when sdiag counted than sdiag counted."""
    counts = _COUNTED.search(statistics)
    if counts is None:
        return False
    at, live = 1000 * int(counts["at"]), 0
    for each in listed:
        # sdiag's time is in whole seconds: a job that was submitted or ended within a second of it may count or not.
        if (each.at("SubmitTime") or 0) <= at + 1000:
            was_live = each.kind not in ENDED or (each.at("EndTime") or 0) >= at - 1000
            live += (len(each.tasks) or 1) if was_live else 0
    return live < int(counts["pending"]) + int(counts["running"])


async def live_jobs(answers: Answers, names: Iterable[str] = ()) -> set[str]:
    """Return the numbers of the jobs that have not ended, as scontrol lists them now. `names`: like `job_blocks`."""
    return _live((await answers.ask_now(placements.DETAIL)).stdout, names)


def _live(printed: str, names: Iterable[str] = ()) -> set[str]:
    live = set()
    for block in job_blocks(printed, names):
        head, state = _JOB.match(block), words(block).get("JobState", "")
        # placed=True: an unknown state counts as live, so that its job is expected.
        if head is not None and states.job_state(state, placed=True) not in ENDED:
            live.add(head[1])
    return live


async def confirmed(answers: Answers, lost: set[str]) -> set[str]:
    """Return those of these live jobs that scontrol also knows when it is asked for them alone: in its list, a text of
    a user may look like a job. At most `MOST_CONFIRMED` are asked for; if none of them exists, no job is missing."""
    for number in sorted(lost, key=int)[:MOST_CONFIRMED]:
        try:
            printed = await answers.ask_now((*placements.DETAIL, number))
        except Failed:
            continue
        if number in _live(printed.stdout):
            return lost
    return set()


def left_out(lost: set[str]) -> Garbled:
    """Return the error for a list of squeue that lacks these jobs."""
    which = f"job {min(lost, key=int)} for one" if len(lost) > 1 else f"job {next(iter(lost))}"
    return Garbled("squeue", f"it leaves out {len(lost)} that scontrol has, {which}")


async def complete_list(
    answers: Answers, argv: tuple[str, ...], printed: Printed, check: CrossCheck, absent: set[str]
) -> Printed:
    """Return an optional list, or a second answer if it lacks names that other lists have.

    1. If no expected name is missing, return the list.
    2. Run the command again; the first answer may have been cut.
    3. If names are still missing, ask for one of them alone.
    4. If the cluster does not have it, the list leaves such names out on purpose: remember them in `absent`.
    5. If it has it, the list is incomplete: raise `Garbled`.
    """
    if not check.lacks(printed.stdout) - absent:  # step 1
        return printed
    try:
        printed = await answers.ask_now(argv)  # step 2
        lost = check.lacks(printed.stdout) - absent
        alone = await answers.ask_now(check.alone(min(lost))) if lost else None  # step 3
    except Garbled:
        raise
    except CockpitError:
        return printed  # some commands refuse to be asked for one name; the list itself was answered
    if alone is None:
        return printed
    name = min(lost)
    if name in check.lacks(alone.stdout):  # step 4
        absent |= lost
        return printed
    # step 5
    error = Garbled(command_of(argv), f"it leaves out {name}")
    answers.replace_by_error(argv, error)
    raise error


async def check_inventory(answers: Answers, nodes: str, partitions: str, fresh_seconds: float) -> None:
    """Compare the lists of nodes and of partitions: each partition names its nodes and each node its partitions.

    Raises `Garbled` when one list lacks a name that the other has, and the controller knows that name.
    """
    records = list(records_of_key(nodes, "NodeName"))
    named_partitions = {word for record in records for word in values.names(record.get("Partitions", ""))}
    listed_nodes = {record["NodeName"] for record in records}
    records = list(records_of_key(partitions, "PartitionName"))
    named_nodes = {str(host) for record in records for host in hosts(values.text(record.get("Nodes", "")))}
    listed_partitions = {record["PartitionName"] for record in records}
    await _check(answers, "node", named_nodes - listed_nodes, fresh_seconds)
    await _check(answers, "partition", named_partitions - listed_partitions, fresh_seconds)


async def _check(answers: Answers, what: str, lost: set[str], fresh_seconds: float) -> None:
    """Ask for one of the missing names: some lists leave out hidden nodes and nodes in state FUTURE on purpose."""
    # One is enough as evidence; asking for each of a thousand would load the controller.
    for name in sorted(lost)[:1]:
        try:
            printed = await answers.ask(("scontrol", "-o", "show", what, name), fresh_seconds)
        except Failed:
            return
        record = words(printed.stdout)
        if name in {record.get("NodeName"), record.get("PartitionName")} and "FUTURE" not in record.get("State", ""):
            raise Garbled(f"scontrol show {what}", f"it leaves out {len(lost)} that exist, {name} for one")
