"""One job's page: first the sentence, then facts, replicas, the held container, last log lines and events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from cockpit.launch.batchscript import script_files
from cockpit.launch.sweeps import has_trial, no_trial, trial_number, trial_values
from cockpit.launch.world import host_of
from cockpit.model.attempt import Replica
from cockpit.model.ids import ReplicaId
from cockpit.model.image import HOST
from cockpit.model.job import ArrayTask, Job
from cockpit.model.jobdetail import JobDetail, ReplicaUse
from cockpit.model.mounts import Model, Reference
from cockpit.model.node import Allocation
from cockpit.model.spec import Access, JobKind, JobSpec, NodeSpec, Sweep
from cockpit.present import units
from cockpit.present.columns import Context
from cockpit.present.events.sentences import event_sentence
from cockpit.present.fleet_placement import fleet_lines
from cockpit.present.folding import command_id
from cockpit.present.job.attempts import attempt_facts, attempt_id
from cockpit.present.job.batch_tasks import batch_lines, trial_lines
from cockpit.present.job.hold_words import cost_words, uncovered_words
from cockpit.present.job.reason_strip import RECORDED
from cockpit.present.job.sessions import command_words
from cockpit.present.job_values import elapsed_seconds, state_text, why
from cockpit.present.log_lines import log_lines
from cockpit.present.moments import clock
from cockpit.present.outlook import starts
from cockpit.present.phrases import as_sentence, card_number, listed
from cockpit.present.priority import priority_lines
from cockpit.present.rings import ring_lines
from cockpit.present.safe import safe
from cockpit.present.spans import plain
from cockpit.present.start_words import bound_lines, no_bound_lines
from cockpit.present.states import GLYPHS, exit_sentence, seconds_left
from cockpit.present.steps import step_lines
from cockpit.present.tables.block_list import blocked_nodes
from cockpit.present.tables.replicas import leaving_replicas, ready_words
from cockpit.present.training import training_lines
from cockpit.present.workers import BEST_EFFORT, replica_count, replica_name, workers_fact

LABEL_ROOM: Final = 14
LAST_EVENTS: Final = 20
TERMINAL: Final = "the terminal that it was started from"
"""Words for the output of a job without a log file."""

KINDS: Final = {
    JobKind.BATCH: "a task of a batch, with a command, an algorithm and an output folder of its own",
    JobKind.INTERACTIVE: "a session, which lasts until it is stopped or its time limit is over, idle or not",
}
_OPEN_TO_MEMBERS = {
    Access.RW: ", whose members may do with it what its owner may",
    Access.RO: ", whose members may look at it and copy it",
    Access.NONE: "",
}


def job_page(detail: JobDetail, context: Context) -> list[str]:
    """Return the page as harmless lines."""
    sections = (
        head(detail, context),
        priority(detail),
        facts(detail, context),
        map(plain, batch_lines(detail, context)),
        map(plain, trial_lines(detail, context)),
        training_lines(detail, context),
        ring_lines(detail, context),
        fleet_lines(detail, context),
        replicas(detail, context),
        blocked_nodes(detail, context),
        steps(detail, context),
        held_container(detail, context),
        last_lines(detail),
        events(detail, context),
    )
    # One blank line between sections that have anything; most jobs have half of them.
    lines: list[str] = []
    for section in sections:
        part = list(section)
        if part:
            lines += ["", *part] if lines else part
    return lines


def head(detail: JobDetail, context: Context) -> Iterator[str]:
    """Yield the job's id, name, user and state, then the reason, its place in the queue and its predicted start."""
    row = detail.row
    state = f"{GLYPHS[row.state]} {state_text(row, context)}"
    yield f"{attempt_id(row)} {safe(row.name)} · {safe(row.user)} · {state}"
    sentence = why(row, context)
    if sentence:
        yield as_sentence(sentence)
    if detail.explanation is not None and detail.explanation.place is not None:
        yield f"Place {detail.explanation.place} in the queue" + _ahead(detail) + "."
    # The forecast of the list, so that both name the same start.
    if row.queued and (forecast := context.forecasts.get(row.id)) is not None:
        yield as_sentence(starts(forecast, context))
        for each in (*bound_lines(forecast, context), *no_bound_lines(forecast)):
            yield as_sentence(plain(each).strip())


def priority(detail: JobDetail) -> Iterator[str]:
    """Yield the parts of the job's priority, one bar for each factor."""
    yield from map(plain, priority_lines(detail))


def facts(detail: JobDetail, context: Context) -> Iterator[str]:
    """Yield the job's request, and what it received and used."""
    spec, row = detail.job.spec, detail.row
    yield _fact("command", command_words(spec.command, spec.kind))
    yield _fact("asks for", asked_for(detail.job))
    if spec.mode is not None:
        yield _fact("mode", spec.mode)
    if spec.sweep is not None and detail.job.array is not None:
        yield _fact("trial", _trial(spec.sweep, detail.job.array))
    if spec.elastic is not None:
        yield _fact("workers", workers_fact(detail))
    if row.placed_on:
        yield _fact("runs on" if row.ended_at is None else "ran on", listed(row.placed_on))
    yield _fact("times", _times(detail, context))
    if detail.job.kind is not JobKind.REGULAR:
        yield _fact("kind", KINDS[detail.job.kind])
    for label, text in (*_excluded(spec, context), *attempt_facts(detail, context)):
        yield _fact(label, text)
    if detail.address:
        yield _fact("address", safe(detail.address))
    yield from _output_facts(detail.job)
    # Without an image a job sees the files of its node; that is no image to name.
    if spec.image != HOST:
        yield _fact("image", safe(spec.image) + (f" = {safe(spec.image_found)}" if spec.image_found else ""))
    for field, each in spec.references():
        yield _fact(field.partition("[")[0].removesuffix("s"), _mounted(each))
    yield _fact("project", safe(row.project) + _OPEN_TO_MEMBERS[spec.access])
    yield from (_fact("label", f"{safe(key)}={safe(value)}") for key, value in spec.labels.items())


def _excluded(spec: JobSpec, context: Context) -> Iterator[tuple[str, str]]:
    """Yield a fact for each node where the job's check failed, so that it may not run there for now."""
    for each in spec.excluded:
        until = clock(each.until, context.now, context.zone)
        yield "excluded", f"{safe(each.node)} until {until}: its check failed there: {safe(each.because)}"


def _output_facts(job: Job) -> Iterator[str]:
    """Yield the job's output folder; for a batch script its working folder and its output files."""
    if job.spec.script is None:
        yield _fact("output", safe(job.spec.output) or TERMINAL)
        return
    number = 1 if job.attempt is None else job.attempt.number
    # As Slurm names them, with the patterns such as `%j` resolved: these are the paths that can be opened.
    files = script_files(job.spec, job.submitter, host_of(job.spec, 0), ReplicaId(job.id, number, 0), job.array)
    yield _fact("folder", safe(job.spec.script.work_dir))
    yield _fact("output", safe(files.stdout))
    # Without --error both streams go to one file, which is named once.
    if files.stderr != files.stdout:
        yield _fact("errors", safe(files.stderr))


def _trial(sweep: Sweep, task: ArrayTask) -> str:
    """Return the number and values of a trial: `3 of 12: lr=0.1 layers=4`."""
    if not has_trial(sweep, task.index):
        return no_trial(sweep, task.index)
    values = " ".join(f"{safe(name)}={safe(value)}" for name, value in trial_values(sweep, task.index).items())
    return f"{trial_number(task.index)} of {task.count}: {values}"


def _mounted(each: Reference) -> str:
    """Return a mounted folder: `corpus v1 = /data/corpus/1 (read-only)`; for a folder without a name its path."""
    name = " ".join(filter(None, (each.name, getattr(each, "version", ""))))
    where = safe(f"{name} = {each.folder}" if name else each.folder)
    return where + (" (read-only)" if getattr(each, "read_only", isinstance(each, Model)) else "")


def replicas(detail: JobDetail, context: Context) -> Iterator[str]:
    """Yield a line for each container of the last attempt, and one for its measured use."""
    attempt = detail.job.attempt
    if attempt is None:
        return
    places = attempt.places
    yield "Replicas" if attempt.number == 1 else f"Replicas of attempt {attempt.number}"
    uses = {use.rank: use for use in detail.use}
    leaving = dict(_leaving_parts(detail.job, context))
    is_elastic = detail.job.spec.elastic is not None
    for replica in attempt.replicas:
        name = replica_name(detail.job.spec, replica.rank)
        lead = f"{replica.rank}  {name} · " if name else f"{replica.rank}  "
        parts = [_replica(replica, places.get(replica.rank), context)]
        if is_elastic and replica.left_at is None:
            parts.append(f"{ready_words(replica)} ready, {units.counted(replica.restarts, 'restart')}")
        if replica.rank in leaving:
            parts.append(leaving[replica.rank])
        yield f"  {lead}{' · '.join(parts)}"
        if replica.rank in uses:
            yield f"     used {_usage_words(uses[replica.rank])}"


def steps(detail: JobDetail, context: Context) -> Iterator[str]:
    if detail.steps:
        yield "Steps"
        yield from map(plain, step_lines(detail, context))


def held_container(detail: JobDetail, context: Context) -> Iterator[str]:
    """Yield until when the job's containers are held, and the commands for a shell in them and for the hold."""
    row = detail.row
    if uncovered := uncovered_words(detail.job):
        yield uncovered
    if row.held_until is None:
        return
    left = units.countdown(seconds_left(row.held_until, context.now))
    yield f"Held until {clock(row.held_until, context.now, context.zone)}, {left} left"
    if cost := cost_words(detail.job, context.now):
        yield f"  {cost}"
    yield f"  open shell    cockpit shell {command_id(row)}"
    yield f"  extend hold   cockpit holds extend {command_id(row)} --by 2h"
    yield f"  end hold      cockpit holds end {command_id(row)}"


def last_lines(detail: JobDetail) -> Iterator[str]:
    if detail.log_tail.strip():
        yield "Last lines"
        yield from (f"  {line}" for line in log_lines(detail.log_tail.rstrip("\n")))
    if detail.log_left_out_mib:
        yield f"Log: {units.memory(detail.log_left_out_mib)} left out between its head and its tail (log_limit)"


def events(detail: JobDetail, context: Context) -> Iterator[str]:
    if detail.events:
        yield f"Events, {RECORDED}" if detail.recorded else "Events"
    # The last ones: what has just happened is what a page is opened for.
    for record in detail.events[-LAST_EVENTS:]:
        at = clock(record.at, context.now, context.zone)
        yield f"  {at}  {safe(record.actor)}  {event_sentence(record, context.zone)}"


def asked_for(job: Job) -> str:
    """Return the job's request: `2 nodes, each with 4 CPUs, 16G and 2 A100, or 8 CPUs …`."""
    each = " with " if job.spec.nodes == 1 else ", each with "
    first = replica_count(job) + each + ", or ".join(map(_node_spec, job.spec.specs))
    # Masters, parameter servers and the like: equal ones are counted together.
    others = Counter(job.spec.helpers).items()
    return "; ".join([first, *(f"{units.counted(count, 'node')} with {_node_spec(spec)}" for spec, count in others)])


def _node_spec(spec: NodeSpec) -> str:
    named = f"{safe(spec.name)}: " if spec.name else ""
    parts = [units.counted(spec.cpus, "CPU"), units.memory(spec.memory_mib)] if spec.cpus else [BEST_EFFORT]
    if spec.card_milli:
        parts.append(units.counted_cards(spec.card_milli, listed(spec.card_models, "or")))
    return f"{named}{', '.join(parts[:-1])}{' and ' if len(parts) > 1 else ''}{parts[-1]}"


def _ahead(detail: JobDetail) -> str:
    ahead = detail.explanation.ahead if detail.explanation else ()
    return f", after {listed(map(str, ahead))}" if ahead else ""


def _times(detail: JobDetail, context: Context) -> str:
    """Return the times of submission, start and end, and the run time with its limit."""
    row = detail.row
    parts = [f"submitted {clock(row.submitted_at, context.now, context.zone)}"]
    if row.started_at is not None:
        parts.append(f"started {clock(row.started_at, context.now, context.zone)}")
    if row.ended_at is not None:
        parts.append(f"ended {clock(row.ended_at, context.now, context.zone)}")
    elapsed = elapsed_seconds(row, context)
    limit = units.limit(row.time_limit_seconds) if row.has_time_limit else ""
    if elapsed is None:
        parts.append(f"limit {limit}" if limit else "no time limit")
    else:
        parts.append(f"{units.duration(elapsed)} of {limit or 'no limit'}")
    return " · ".join(parts)


def _replica(replica: Replica, place: Allocation | None, context: Context) -> str:
    """Return one replica's node, cards, start, exit and limits."""
    parts = [] if place is None else [safe(place.node) + _cards(place)]
    if replica.started_at is not None:
        parts.append(f"started {clock(replica.started_at, context.now, context.zone)}")
    if replica.exit is not None:
        parts.append(exit_sentence(replica.exit))
    if replica.left_at is not None:
        now = "was" if replica.unblocked_at is not None else "is"
        blocked = f", its node {now} on the block list: {safe(replica.blocked)}" if replica.blocked else ""
        parts.append(f"left {clock(replica.left_at, context.now, context.zone)}{blocked}")
    if replica.limits:
        parts.append(f"limits: {safe(replica.limits)}")
    return " · ".join(parts) or "not started"


def _leaving_parts(job: Job, context: Context) -> Iterator[tuple[int, str]]:
    """Yield replica and words for each worker of an elastic job that was asked to end: why, and its time."""
    if job.spec.elastic is None:
        return
    kill_at, because = leaving_replicas(job)
    for rank, at in kill_at.items():
        yield rank, f"{because[rank]}, killed in {units.spoken(seconds_left(at, context.now))}"


def _usage_words(use: ReplicaUse) -> str:
    """Return one replica's measured use so far; `n/a` where nothing is measured."""
    parts = [] if use.cpu_ms is None else [f"{units.duration(use.cpu_ms // 1000)} CPU time"]
    if use.peak_memory_mib is not None:
        parts.append(f"{units.memory(use.peak_memory_mib)} at most")
    if use.mean_card_percent is not None:
        parts.append(f"cards {use.mean_card_percent} % busy on average")
    return ", ".join(parts) or "n/a"


def _cards(place: Allocation) -> str:
    if not place.slices:
        return ""
    slots = (card_number(part.card, part.slot, assumed=part.assumed) for part in place.slices)
    return f" {'card' if len(place.slices) == 1 else 'cards'} {listed(slots)}"


def _fact(label: str, text: str) -> str:
    return f"{label:<{LABEL_ROOM}}{text}"
