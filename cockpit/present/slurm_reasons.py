"""Slurm's reason codes as sentences. There are more than two hundred, most of them limits named by one pattern; an
unknown code is shown as it is."""

from __future__ import annotations

import re
from typing import Final

from cockpit.model.reasons import SchedulerReason
from cockpit.present.phrases import Wording, wording
from cockpit.present.safe import safe

_LIMIT: Final = re.compile(
    r"(?P<whose>Assoc|QOS|)(?P<scope>Grp|Max|Min)(?P<what>Submit ?Jobs?|Jobs?|WallDuration|Wall|Cpu|CPU|Memory|Mem|"
    r"Node|GRES|Energy|License|BB|Billing|Unknown)(?P<time>RunMinutes|RunMins|Minutes)?"
    r"(?:Per(?P<per>Job|User|Node|Account))?(?:Limit|NotSatisfied)?"
)
_WHAT: Final = {
    "cpu": "CPUs",
    "mem": "memory",
    "memory": "memory",
    "node": "nodes",
    "gres": "cards (GRES)",
    "energy": "energy",
    "license": "licences",
    "bb": "burst buffer",
    "billing": "billing",
    "unknown": "a resource",
}
_COUNTED: Final = frozenset({"CPUs", "nodes", "cards (GRES)", "licences"})
_WHOSE_BRIEFLY: Final = {"Assoc": "its account or user", "QOS": "its QOS", "": "its QOS"}
_WHOSE: Final = {"Assoc": "its account's or user's association", "QOS": "its QOS", "": "its QOS"}
_DOWN: Final = "nodes that it needs are down, drained or reserved for partitions of higher priority"

SENTENCES: Final[tuple[tuple[str, str], ...]] = (
    ("Priority", "jobs of higher priority come first"),
    ("Resources", "waits for free nodes, CPUs, memory or cards"),
    ("None", "has not been looked at yet"),
    ("Prolog", "its nodes are being prepared"),
    ("DependencyNeverSatisfied", "a job that it depends on ended otherwise: it never starts"),
    ("Dependency", "waits for another job"),
    ("PartitionNodeLimit", "asks for more or fewer nodes than its partition gives"),
    ("PartitionTimeLimit", "asks for a longer time than its partition gives"),
    ("PartitionDown", "its partition is down"),
    ("PartitionInactive", "its partition is inactive"),
    ("PartitionConfig", "its partition does not let it run"),
    ("JobHeldAdmin", "held by an administrator"),
    ("JobHeldUser", "held by its owner"),
    ("JobHoldMaxRequeue", "was requeued as often as allowed, and is held"),
    ("JobArrayTaskLimit", "as many tasks of its array run as may at once"),
    ("BeginTime", "is to begin later"),
    ("Licenses", "waits for licences"),
    ("AssociationJobLimit", "as many jobs of its account or user run as may at once"),
    ("AssociationResourceLimit", "its account or user holds as much as it may"),
    ("AssociationTimeLimit", "its account or user has used up its time"),
    ("AccountingPolicy", "a limit of its account, user or QOS stops it"),
    ("ReservationDeleted", "its reservation is gone"),
    ("ReservationInvalid", "its reservation is no good to it"),
    ("Reservation", "waits for its reservation"),
    ("ReqNodeNotAvail", "nodes that it needs are not available"),
    ("Nodes required for job are DOWN", _DOWN),
    ("NodeDown", "a node of it is down"),
    ("FrontEndDown", "the front end nodes are down"),
    ("SchedDefer", "the scheduler looks at new jobs later"),
    ("BadConstraints", "no nodes can ever give it what it asks for"),
    ("Constraints", "no nodes just now have the features that it asks for"),
    ("SystemFailure", "Slurm itself failed"),
    ("JobLaunchFailure", "could not be launched"),
    ("NonZeroExitCode", "its command failed"),
    ("RaisedSignal", "its command was ended by a signal"),
    ("TimeLimit", "reached its time limit"),
    ("InactiveLimit", "was inactive for too long"),
    ("InvalidAccount", "its account is not valid"),
    ("InvalidQOS", "its QOS is not valid"),
    ("QOSUsageThreshold", "its QOS takes no more jobs from accounts that used so much"),
    ("QOSJobLimit", "as many jobs of its QOS run as may at once"),
    ("QOSResourceLimit", "its QOS holds as much as it may"),
    ("QOSTimeLimit", "its QOS has used up its time"),
    ("QOSNotAllowed", "its partition does not take its QOS"),
    ("AccountNotAllowed", "its partition does not take its account"),
    ("Cleaning", "its last run is still being cleaned up"),
    ("BurstBufferResources", "waits for room in the burst buffer"),
    ("BurstBufferStageIn", "its files are being brought into the burst buffer"),
    ("BurstBufferOperation", "the burst buffer failed"),
    ("BlockMaxError", "its block of nodes has too many errors"),
    ("BlockFreeAction", "its block of nodes is being freed"),
    ("PowerNotAvail", "there is not enough power"),
    ("PowerReserved", "waits for power that is reserved for other jobs"),
    ("MaxPoweredUpNodes", "as many nodes are powered up as may be"),
    ("MaxMemPerLimit", "asks for more memory for each CPU or node than is allowed"),
    ("MpiPortsBusy", "waits for free MPI ports"),
    ("NvidiaImexChannels", "waits for free IMEX channels of the cards"),
    ("DeadLine", "could no longer end by its deadline"),
    ("OutOfMemory", "used more memory than it asked for"),
    ("FedJobLock", "another cluster of the federation has it"),
    ("Federation", "another cluster of the federation has it"),
)
"""Sentences by the beginning of a reason's code; of codes with a common beginning the longer comes first. Slurm writes
some codes as sentences, with blanks or underscores, and lists nodes after a comma."""


_BRIEFLY: Final = {
    _DOWN: "nodes that it needs are down or reserved",
    "a job that it depends on ended otherwise: it never starts": "never starts: a job before it ended otherwise",
    "as many jobs of its account or user run as may at once": "its account or user is at its job limit",
    "its QOS takes no more jobs from accounts that used so much": "its account has used too much for its QOS",
    "no nodes just now have the features that it asks for": "no node now has the features that it asks for",
    "asks for more memory for each CPU or node than is allowed": "asks for more memory than is allowed",
    "asks for more or fewer nodes than its partition gives": "asks for too many or too few nodes",
}
"""Short clauses for the sentences that are too long for a list."""


def slurm_wording(reason: SchedulerReason) -> Wording:
    """Return the words for a Slurm reason: first what blocks the job, then what the reason is about."""
    # Some codes come with blanks, some with underscores.
    code = reason.code.replace("_", " ").strip()
    more = [safe(reason.about)] if reason.about else [*_behind_the_comma(code)]
    # The codes of limits are put together from parts, of which there are too many combinations for the table.
    limit = _LIMIT.fullmatch(code.replace(" ", ""))
    if limit is not None:
        return wording(_of_limit(limit), *more, brief=_limit_briefly(limit))
    sentence = next((words for lead, words in SENTENCES if code.startswith(lead)), "")
    if not sentence:
        unknown = f"the cluster says: {safe(reason.code)}" if reason.code else "waits, and the cluster does not say why"
        return wording(unknown)
    return wording(sentence, *more, brief=_BRIEFLY.get(sentence, ""))


def _behind_the_comma(code: str) -> list[str]:
    """Return the details after the comma of a code: the nodes of `ReqNodeNotAvail, UnavailableNodes:n[1-3]`."""
    _, comma, rest = code.partition(", ")
    # That code has commas of its own, in a sentence.
    if not comma or code.startswith("Nodes required"):
        return []
    nodes = rest.partition(":")[2]
    return [f"unavailable: {safe(nodes)}"] if nodes else [safe(rest.strip())]


def _of_limit(match: re.Match[str]) -> str:
    whose, what = _WHOSE[match["whose"]], match["what"].lower()
    if what.startswith(("submit", "job")):
        waits = "wait and run" if what.startswith("submit") else "run at once"
        return f"as many jobs {waits} as {whose} allows{_for_each(match)}"
    if what.startswith("wall"):
        # A group limit is a budget that all jobs share, a maximum is for each job.
        used_up = match["scope"] == "Grp"
        return f"the time that {whose} has is used up" if used_up else f"asks for a longer time than {whose} allows"
    return _of_resource(match, whose, _WHAT[what])


def _limit_briefly(match: re.Match[str]) -> str:
    """Return the short clause for a limit: `at the job limit of its QOS`."""
    whose, what = _WHOSE_BRIEFLY[match["whose"]], match["what"].lower()
    if what.startswith("submit"):
        return f"at the limit of submitted jobs of {whose}"
    if what.startswith("job"):
        return f"at the job limit of {whose}"
    if what.startswith("wall"):
        return f"the time of {whose} is used up" if match["scope"] == "Grp" else f"asks for too long for {whose}"
    if match["scope"] == "Min":
        return f"asks for too little for {whose}"
    thing = _WHAT[what].removesuffix("s") if what != "gres" else "card"
    if match["per"] in {"Job", "Node"}:
        return f"above the {thing} limit of {whose}"
    return f"at the {thing}{' time' if match['time'] else ''} limit of {whose}"


def _of_resource(match: re.Match[str], whose: str, what: str) -> str:
    """Return the sentence for a limit on a resource, by its scope in the code's name."""
    counted = what in _COUNTED
    if match["scope"] == "Min":
        return f"asks for {'fewer' if counted else 'less'} {what} than {whose} demands"
    if match["per"] in {"Job", "Node"}:
        over = " over its time" if match["time"] else ""
        return f"asks for more {what}{over} than {whose} allows one {match['per'].lower()}"
    if match["time"]:
        # GrpTRESRunMins counts what running jobs may still use up to their limits.
        gone = "promised to what runs" if "Run" in match["time"] else "used up"
        return f"the {what} × time that {whose} has is {gone}"
    return f"as {f'many {what} are' if counted else f'much {what} is'} in use as {whose} allows{_for_each(match)}"


def _for_each(match: re.Match[str]) -> str:
    return f" one {match['per'].lower()}" if match["per"] in {"User", "Account"} else ""
