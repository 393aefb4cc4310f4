"""The Replicas tab of a job's page: the node and state of each rank, then each container's files, environment and final
command, computed as the engine computes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cockpit.errors import SpecErrors
from cockpit.launch.command import words_of
from cockpit.launch.plan import LaunchPlan, launch_plan
from cockpit.launch.workspace import mounted_folders
from cockpit.model.ids import ReplicaId
from cockpit.model.image import HOST as HOST_IMAGE
from cockpit.model.masking import masked_env, masked_spec
from cockpit.model.spec import HomeAccess
from cockpit.present import units
from cockpit.present.command_text import shell_text
from cockpit.present.job.sessions import command_words
from cockpit.present.moments import clock
from cockpit.present.phrases import card_number
from cockpit.present.rings import ring_lines
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, INDENT, MUTED, STRONG, Line, Span, line, small_table
from cockpit.present.states import exit_sentence, seconds_left
from cockpit.present.steps import step_lines
from cockpit.present.tables.block_list import blocked_nodes
from cockpit.present.tables.replicas import leaving_replicas, ready_words
from cockpit.present.training import training_lines
from cockpit.present.width import pad, widest
from cockpit.present.workers import replica_name, workers_fact

if TYPE_CHECKING:
    from cockpit.model.attempt import Attempt, Replica
    from cockpit.model.ids import Millis
    from cockpit.model.job import Job
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.node import Allocation
    from cockpit.present.columns import Context
    from cockpit.present.job.answer import PanelContext

HOME: Final = {HomeAccess.RO: "read only", HomeAccess.RW: "read and write"}
EMPTY: Final = "(empty)"
NOT_PLACED: Final = "It has not been placed yet; the first tab says why. Once it is, this is what each container gets."


def replicas_tab(detail: JobDetail, panel: PanelContext) -> Iterator[Line]:
    """Yield the tab's harmless lines."""
    attempt = detail.job.attempt
    if attempt is None:
        yield line(Span(INDENT + NOT_PLACED, MUTED))
    else:
        if detail.job.spec.elastic is not None:
            yield line(Span(f"{INDENT}workers  ", MUTED), workers_fact(detail))
            yield line()
        yield from _placed(detail.job, attempt, panel.context)
        of_elastic = (training_lines, ring_lines, blocked_nodes)
        for section in (make(detail, panel.context) for make in of_elastic):
            if texts := list(section):
                yield line()
                yield line(Span(INDENT + texts[0], STRONG))
                yield from (line(Span(INDENT + text)) for text in texts[1:])
    if detail.steps:
        yield line()
        yield from step_lines(detail, panel.context)
    yield line()
    yield from _files(detail.job)
    if attempt is None:
        yield line()
        yield line(Span(f"{INDENT}runs  ", MUTED), command_words(detail.job.spec.command, detail.job.spec.kind))
    else:
        yield from _ranks(detail.job, attempt, panel)


def _placed(job: Job, attempt: Attempt, context: Context) -> Iterator[Line]:
    """Yield the table of replicas: node, cards, start, limits and state of each."""
    places = attempt.places
    # Recalled workers still run, for as long as their grace lasts.
    kill_at, _ = leaving_replicas(job) if job.spec.elastic is not None else ({}, {})
    rows = [
        (_rank(job, each), *_replica(each, places.get(each.rank), context, kill_at.get(each.rank)))
        for each in attempt.replicas
    ]
    titles: tuple[str, ...] = ("RANK", "NODE", "CARDS", "STARTED", "LIMITS", "STATE")
    if job.spec.elastic is not None:
        titles = ("RANK", "READY", "RESTARTS", *titles[1:])
        rows = [
            (rank, ready_words(each), str(each.restarts), *others)
            for (rank, *others), each in zip(rows, attempt.replicas, strict=True)
        ]
    if attempt.number > 1:
        yield line(Span(f"{INDENT}Attempt {attempt.number}", STRONG))
    yield from small_table(titles, rows)


def _rank(job: Job, replica: Replica) -> str:
    return f"{replica.rank} {replica_name(job.spec, replica.rank)}".rstrip()


def _replica(replica: Replica, place: Allocation | None, context: Context, kill_at: Millis | None) -> tuple[str, ...]:
    started = clock(replica.started_at, context.now, context.zone) if replica.started_at is not None else "–"
    runs = "runs" if replica.started_at else "not started"
    if kill_at is not None:
        runs = f"is recalled, killed in {units.spoken(seconds_left(kill_at, context.now))}"
    ended = exit_sentence(replica.exit) if replica.exit is not None else runs
    ended = f"left ({safe(replica.blocked) or ended})" if replica.left_at is not None else ended
    node = safe(place.node) if place is not None else "–"
    return node, _slots(place), started, safe(replica.limits) or "–", ended


def _slots(place: Allocation | None) -> str:
    """Return the cards of an allocation: `1, 2` for whole cards, `1(2)` for the second slice of the first card."""
    parts = place.slices if place is not None else ()
    return ", ".join(card_number(part.card, part.slot, assumed=part.assumed) for part in parts) or "–"


def _files(job: Job) -> Iterator[Line]:
    """Yield the paths that each container shares with the machine, and its image."""
    spec = job.spec
    rows = [("/", spec.image, "changes stay in it")] if spec.image != HOST_IMAGE else []
    rows += [
        (each.target, each.source, "read and write" if each.writable else "read only") for each in mounted_folders(spec)
    ]
    if spec.home in HOME:
        rows.append((job.submitter.home, job.submitter.home, HOME[spec.home]))
    yield line(Span(f"{INDENT}Files of each container", STRONG))
    yield from small_table(("IN IT", "IS", "FOR IT"), [(safe(seen), safe(real), how) for seen, real, how in rows])


def _ranks(job: Job, attempt: Attempt, panel: PanelContext) -> Iterator[Line]:
    """Yield the launch plan of each rank; the environment that all have in common comes first, once."""
    plans = dict(_plans(job, attempt, panel))
    known = [plan for plan in plans.values() if isinstance(plan, LaunchPlan)]
    # Most of a hundred variables are the same for each rank; what differs is what users look for.
    common = dict(set.intersection(*(set(plan.env.items()) for plan in known))) if len(known) > 1 else {}
    if common:
        yield line()
        yield line(Span(f"{INDENT}Environment of every rank", STRONG))
        yield from _variables(common)
    places = {each.rank: each.node for each in attempt.whole_placement}
    for rank, plan in plans.items():
        yield line()
        yield line(Span(f"{INDENT}Rank {rank}", STRONG), Span(f" on {safe(places[rank])}", MUTED))
        if isinstance(plan, str):
            yield line(Span(f"{INDENT}  {plan}", MUTED))
            continue
        yield from _command(plan)
        yield line(Span(f"{INDENT}  in    ", MUTED), safe(plan.workdir), Span(" on host ", MUTED), safe(plan.hostname))
        if plan.devices:
            yield line(Span(f"{INDENT}  sees  ", MUTED), ", ".join(map(safe, plan.devices)))
        yield from _variables({name: value for name, value in plan.env.items() if name not in common})


def _command(plan: LaunchPlan) -> Iterator[Line]:
    """Yield the command that runs; before it the command with variables where they were replaced, then files
    and hints."""
    # Where nothing was replaced both lines would say the same.
    if words_of(plan.command) != list(plan.argv):
        yield line(Span(f"{INDENT}  of    ", MUTED), Span(safe(plan.command), MUTED))
    yield line(Span(f"{INDENT}  runs  ", MUTED), shell_text(plan.argv))
    for path, text in plan.files.items():
        yield line(Span(f"{INDENT}  finds ", MUTED), safe(path))
        yield from (line(Span(f"{INDENT}          {safe(each)}", MUTED)) for each in text.splitlines())
    for hint in plan.hints:
        yield line(Span(f"{INDENT}  hint  ", MUTED), safe(hint))


def _plans(job: Job, attempt: Attempt, panel: PanelContext) -> Iterator[tuple[int, LaunchPlan | str]]:
    """Yield each rank's launch plan, or the sentence why it cannot be computed."""
    for place in attempt.whole_placement:
        node = panel.node(place.node)
        replica = ReplicaId(job.id, attempt.number, place.rank)
        if node is None:
            yield place.rank, f"{safe(place.node)} is not known here, so neither is what it gives to the container."
            continue
        try:
            plan = launch_plan(
                masked_spec(job.spec), job.submitter, node, place, attempt.whole_placement, replica, job.array
            )
        # An old placement may name cards or nodes that are gone; the other ranks are shown all the same.
        except (SpecErrors, LookupError) as error:
            yield place.rank, safe(str(error))
        else:
            yield place.rank, plan


def _variables(env: dict[str, str]) -> Iterator[Line]:
    names = widest([safe(name) for name in env])
    for name, shown in sorted(masked_env(env).items()):
        value = Span(safe(shown)) if shown else Span(EMPTY, MUTED)
        yield line(Span(f"{INDENT}  {pad(safe(name), names)}  ", ACCENT), value)
