"""The panel beside the submit form: the predicted start, and previews of the commands, the possible nodes and the job
as a file in several formats."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from msgspec.structs import replace

from cockpit.errors import RequestRefused, SpecErrors
from cockpit.formats.foreign.converting import JOB_FILE, ConvertedJob
from cockpit.launch.example_placement import example_cards, example_placement
from cockpit.launch.plan import LaunchPlan, launch_plan
from cockpit.launch.sweeps import task_spec
from cockpit.model.ids import JobId, ReplicaId
from cockpit.model.masking import masked_spec
from cockpit.model.node import NodeState
from cockpit.model.spec import JobKind
from cockpit.present.command_text import shell_text
from cockpit.present.form.nodes import node_lines
from cockpit.present.outlook import prediction
from cockpit.present.phrases import as_sentence
from cockpit.present.reasons import reason_sentence
from cockpit.present.safe import safe, safe_lines
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, hung, line, worded, wrapped
from cockpit.present.units import counted

if TYPE_CHECKING:
    from cockpit.formats.job.file import ReadJobs
    from cockpit.model.forecast import Outlook
    from cockpit.model.job import Submitter
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import NodeRow
    from cockpit.present.columns import Context


MOST_RANKS: Final = 4


def start_line(outlook: Outlook | None, context: Context) -> Line:
    """Return the predicted start as a line, such as `Starts now.`; None: not known yet."""
    if outlook is None:
        return line(Span("asking when it would start …", MUTED))
    return line(Span(as_sentence(prediction(outlook, context)), STRONG))


def why_lines(outlook: Outlook | None, context: Context, columns: int) -> Iterator[Line]:
    """Yield the reason that would block the job; no lines where it would start now."""
    if outlook is not None and outlook.explanation is not None and not outlook.forecast.now:
        reason = reason_sentence(outlook.explanation.reason, context.now, context.zone)
        yield from worded(as_sentence(reason), columns)
        yield line()


def imported_lines(source: ConvertedJob, columns: int) -> Iterator[Line]:
    """Yield the source from which the form was filled, and the parts of it that no field could take."""
    if source.what == JOB_FILE:
        return
    yield line(Span("Taken over from ", MUTED), Span(source.what, STRONG))
    if source.notes:
        yield line(Span(f"{counted(len(source.notes), 'thing', 'things')} of it could not be carried over:", "warning"))
    for note in source.notes:
        yield from hung(line(Span(f"  {safe(note)}", "warning")), columns)
    yield line()


def run_lines(spec: JobSpec, submitter: Submitter, nodes: Sequence[NodeRow], columns: int) -> Iterator[Line]:
    """Yield each rank's final command, placed on the first nodes in service, as the real placement is not known yet.
    For a batch: the command of each task's first rank."""
    if spec.kind is JobKind.BATCH:
        yield from _task_lines(spec, submitter, nodes, columns)
        return
    # Login nodes run no jobs.
    places = [row.node for row in nodes if row.node.state is NodeState.UP and not row.login]
    if not places:
        return
    placement = example_placement(spec, tuple(node.name for node in places))
    for part in placement[:MOST_RANKS]:
        # Fewer nodes than ranks are used again: it is about the command, not about the place.
        node = replace(places[part.rank % len(places)], cards=example_cards(spec, part, places))
        try:
            plan = launch_plan(spec, submitter, node, part, placement, ReplicaId(JobId(0), 1, part.rank))
        except SpecErrors as wrong:
            yield line(Span(safe(str(wrong)), "warning"))
            return
        yield from _rank(part.rank, plan, columns)
    if len(placement) > MOST_RANKS:
        yield line(Span(f"and so on, up to rank {len(placement) - 1}", MUTED))


def _task_lines(spec: JobSpec, submitter: Submitter, nodes: Sequence[NodeRow], columns: int) -> Iterator[Line]:
    for index in range(min(len(spec.tasks), MOST_RANKS)):
        task = task_spec(spec, index)
        yield from wrapped(
            line(Span(f"task {index}  ", STRONG), Span(f"writes into {safe(task.output)}", MUTED)), columns
        )
        # One rank tells how the task is started; all tasks and ranks would be too long.
        yield from run_lines(replace(task, nodes=1), submitter, nodes, columns)
    if len(spec.tasks) > MOST_RANKS:
        yield line(Span(f"and so on, up to task {len(spec.tasks) - 1}", MUTED))


def _rank(rank: int, plan: LaunchPlan, columns: int) -> Iterator[Line]:
    yield line(Span(f"rank {rank}  ", STRONG), Span(f"{safe(plan.hostname)} in {safe(plan.workdir)}", MUTED))
    yield from wrapped(line(Span(shell_text(plan.argv), ACCENT)), columns)
    for hint in plan.hints:
        yield from hung(line(Span(safe(hint), MUTED)), columns)


def text_lines(text: str) -> Iterator[Line]:
    """Yield the lines of a file's text, harmless."""
    return (line(each) for each in safe_lines(text).splitlines())


_LEAD: Final = re.compile(r"^jobs\[0\]\.")


class CommandText(Protocol):
    """A command and its standard input."""

    @property
    def argv(self) -> Sequence[str]: ...
    @property
    def stdin(self) -> str: ...


HANDED: Final = "What the cluster is handed"


class Preview(StrEnum):
    """The previews, in the order in which the key switches between them."""

    RUNS = "What each rank runs"
    ROOM = "Nodes it may be on"
    YAML = "As a file"
    SBATCH = "As a script for sbatch"
    MANIFEST = "As a manifest"

    @property
    def following(self) -> Preview:
        every = list(Preview)
        return every[(every.index(self) + 1) % len(every)]


def preview_lines(
    preview: Preview,
    spec: JobSpec,
    known: JobSpec,
    submitter: Submitter,
    nodes: Sequence[NodeRow],
    read: ReadJobs,
    columns: int,
) -> Iterator[Line]:
    """Yield the preview's title and lines. `known`: the spec with catalogue names replaced as far as they are known."""
    yield line(Span(preview, STRONG))
    spec, known = masked_spec(spec), masked_spec(known)
    match preview:
        case Preview.RUNS:
            yield from run_lines(known, submitter, nodes, columns)
        case Preview.ROOM:
            yield from node_lines(known, nodes, columns)
        case Preview.YAML:
            from cockpit.formats.job.specfile import spec_as_yaml

            yield from text_lines(spec_as_yaml(spec))
        case Preview.SBATCH | Preview.MANIFEST:
            yield from _foreign_lines(spec, read, manifest=preview is Preview.MANIFEST)


def script_lines(shown: CommandText | RequestRefused | None, columns: int) -> Iterator[Line]:
    """Yield the script that a cluster's submit command receives, or why none can be made. `shown` None: not
    known yet."""
    yield line(Span(HANDED, STRONG))
    if isinstance(shown, RequestRefused):
        # The path of the only job is left out: the form has just this one.
        for text in shown.refusal.message.splitlines():
            yield from hung(line(Span(safe(_LEAD.sub("", text)), "warning")), columns)
    elif shown is not None:
        yield from wrapped(line(Span(shell_text(shown.argv), ACCENT)), columns)
        for each in text_lines(shown.stdin):
            yield from wrapped(each, columns)


def _foreign_lines(spec: JobSpec, read_jobs: ReadJobs, *, manifest: bool) -> Iterator[Line]:
    """Yield the job in another system's format, and the fields that the format cannot express."""
    from cockpit.formats.foreign.exchange import Form, written

    def read(source: str, text: str) -> list[JobSpec]:
        return read_jobs(f"{source}.json", text, "/")

    # Worker pools are a notion of Vertex, which a PyTorchJob cannot express.
    of_kind = Form.CUSTOMJOB if spec.worker_pools else Form.PYTORCHJOB
    try:
        document = written(spec, of_kind if manifest else Form.SBATCH, read)
    except SpecErrors as wrong:
        yield from (line(Span(safe(each), "warning")) for each in wrong.errors)
        return
    if document.lost:
        yield line(Span(f"does not say all of: {safe(', '.join(document.lost))}", "warning"))
    yield from text_lines(document.text)
