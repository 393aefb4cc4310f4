"""Whether a list that is whole by its form is also all that the controller knows.

A list that is cut exactly between two records looks like a shorter list. What was read before, and what other commands
say, show it: then the controller is asked once more in another way before anything is called gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from cockpit.backends.slurm.mapping import placements, states, values
from cockpit.backends.slurm.mapping.hostlist import hosts
from cockpit.backends.slurm.mapping.records import blocks, settings, words
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
_COUNTED = re.compile(
    r"^Job states ts:.*\((?P<at>\d+)\)\s+Jobs pending:\s*(?P<pending>\d+)\s+Jobs running:\s*(?P<running>\d+)",
    re.MULTILINE,
)
_JOB = re.compile(r"JobId=(\d+)")

Records = Mapping[str, "Listed"]
"""By Slurm's number of the record."""


class Look(NamedTuple):
    """One list of jobs, and what was known before it."""

    records: Records
    before: Records
    elapsed_seconds: float
    """Since that was read."""


async def is_doubtful(answers: Answers, look: Look, config: str) -> bool:
    """Whether jobs may be missing from the list: some vanished that cannot have been forgotten yet, or the controller
    counts more of them. A count is asked for only where nothing is known, or nothing is left."""
    vanished = (number for number, each in look.before.items() if each.kind not in ENDED and number not in look.records)
    if next(vanished, None) is not None:
        return look.elapsed_seconds < (values.seconds(settings(config).get("MinJobAge", "")) or 0)
    if (look.before and look.records) or _hides_jobs(config):
        return False
    try:
        printed = await answers.ask(STATISTICS, FRESH_SECONDS)
    except CockpitError:
        return False  # the list itself was answered; not every site lets users count
    return _fewer(look.records.values(), printed.stdout)


def _hides_jobs(config: str) -> bool:
    """The controller counts also what the asker may not see, then."""
    return "jobs" in settings(config).get("PrivateData", "").split(",")


def _fewer(listed: Iterable[Listed], statistics: str) -> bool:
    """Whether fewer jobs waited or ran at the moment of the count than were counted, to a second."""
    found = _COUNTED.search(statistics)
    if found is None:
        return False
    at, there = 1000 * int(found["at"]), 0
    for each in listed:
        if (each.at("SubmitTime") or 0) <= at + 1000:
            still = each.kind not in ENDED or (each.at("EndTime") or 0) >= at - 1000
            there += (len(each.tasks) or 1) if still else 0
    return there < int(found["pending"]) + int(found["running"])


async def live_jobs(answers: Answers) -> set[str]:
    """Return the numbers of the records that have not ended, as scontrol has them just now."""
    printed = await answers.ask_now(placements.DETAIL)
    found = set()
    for block in blocks(printed.stdout, "JobId"):
        head, state = _JOB.match(block), words(block).get("JobState", "")
        if head is not None and states.job_state(state, placed=True) not in ENDED:
            found.add(head[1])
    return found


def left_out(lost: set[str]) -> Garbled:
    """What is wrong with squeue's list."""
    which = f"job {min(lost, key=int)} for one" if len(lost) > 1 else f"job {next(iter(lost))}"
    return Garbled("squeue", f"it leaves out {len(lost)} that scontrol has, {which}")


async def completed(
    answers: Answers, argv: tuple[str, ...], printed: Printed, check: CrossCheck, absent: set[str]
) -> Printed:
    """Return the list, or one that is asked for once more where it lacks what others name.

    `absent`: names of which it was found that the list leaves them out on purpose. Raises `Garbled` where it lacks a
    name twice and the cluster, asked for that one alone, has it.
    """
    if not check.lacks(printed.stdout) - absent:
        return printed
    try:
        printed = await answers.ask_now(argv)
        lost = check.lacks(printed.stdout) - absent
        found = await answers.ask_now(check.alone(min(lost))) if lost else None
    except Garbled:
        raise
    except CockpitError:
        return printed  # who is asked for one name only says no; the list itself was answered
    if found is None:
        return printed
    name = min(lost)
    if name in check.lacks(found.stdout):
        absent |= lost
        return printed
    error = Garbled(command_of(argv), f"it leaves out {name}")
    answers.disbelieve(argv, error)
    raise error


async def check_inventory(answers: Answers, nodes: str, partitions: str, fresh_seconds: float) -> None:
    """Partitions name their nodes and nodes their partitions: raises `Garbled` where one list lacks what the other
    names, and the controller has it."""
    named = {word for block in blocks(nodes, "NodeName") for word in values.names(words(block).get("Partitions", ""))}
    have = {words(block)["NodeName"] for block in blocks(nodes, "NodeName")}
    records = [words(block) for block in blocks(partitions, "PartitionName")]
    wanted = {str(host) for record in records for host in hosts(values.text(record.get("Nodes", "")))}
    await _check(answers, "node", wanted - have, fresh_seconds)
    await _check(answers, "partition", named - {record["PartitionName"] for record in records}, fresh_seconds)


async def _check(answers: Answers, what: str, lost: set[str], fresh_seconds: float) -> None:
    """One of them is asked for by its name: some lists leave out what is hidden or planned, on purpose."""
    for name in sorted(lost)[:1]:
        try:
            printed = await answers.ask(("scontrol", "-o", "show", what, name), fresh_seconds)
        except Failed:
            return
        record = words(printed.stdout)
        if name in {record.get("NodeName"), record.get("PartitionName")} and "FUTURE" not in record.get("State", ""):
            raise Garbled(f"scontrol show {what}", f"it leaves out {len(lost)} that there are, {name} for one")
