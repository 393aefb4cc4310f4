"""Rules between fields of a spec that are each valid by themselves, and rules that depend on the job's kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from cockpit.model.resilience import Elastic
from cockpit.model.rules.batchscript import script_conflicts
from cockpit.model.rules.bounds import MOST_SPECS
from cockpit.model.rules.mounts import mount_conflicts, reference_checks
from cockpit.model.rules.pools import pool_conflicts, sweep_conflicts
from cockpit.model.rules.text import COMMAND_BYTES, PATH_BYTES, count_error, text_error, utf8_size
from cockpit.model.spec import JobKind, JobSpec, Mode
from cockpit.model.text import visible

MOST_BATCH_TASKS = 1000
FILE_NAME_BYTES = 255


def kind_checks(spec: JobSpec) -> Iterator[tuple[str, str | None]]:
    """Return what is wrong with the command or the tasks."""
    # A session may have a command, a batch has those of its tasks (`_batch_conflicts`).
    if spec.command or spec.kind is JobKind.REGULAR:
        yield "command", text_error(spec.command, COMMAND_BYTES)
    yield "tasks", count_error(len(spec.tasks), MOST_BATCH_TASKS)
    for index, task in enumerate(spec.tasks[:MOST_BATCH_TASKS]):
        yield f"tasks[{index}].command", text_error(task.command, COMMAND_BYTES)
        if task.algorithm is not None:
            yield from reference_checks(f"tasks[{index}].algorithm", task.algorithm)


def kind_conflicts(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Return the fields that a job of this kind cannot have."""
    if spec.kind is JobKind.BATCH:
        yield from _batch_conflicts(spec)
    elif spec.tasks:
        yield "tasks", f"cannot be used in a job of the kind {spec.kind}; write kind: batch, or remove them"
    if spec.kind is not JobKind.REGULAR and spec.resume is not None:
        yield "resume", "is for regular jobs alone; remove it, or write kind: regular"
    if spec.kind is JobKind.INTERACTIVE:
        if spec.array is not None:
            yield "array", "cannot be used in a session, which people enter one by one; remove it"
        if spec.staging:
            yield "staging", "cannot be used in a session (kind: interactive), which starts without copies; remove it"


def _batch_conflicts(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield the conflicts of a batch, whose tasks have commands of their own."""
    if not spec.tasks:
        yield "tasks", "is missing; a batch has one or more: [{command: …, algorithm: …}]"
    for field, given in (("command", spec.command), ("algorithm", spec.algorithm)):
        if given:
            yield field, "cannot be used with tasks, each of which has its own; remove it"
    if spec.array is not None:
        yield "array", "cannot be used with tasks, which are one already; remove it"
    # The last task has the most digits, so that its folder has the longest name.
    longest = f"{spec.name}-{len(spec.tasks) - 1}"
    if utf8_size(longest) > FILE_NAME_BYTES:
        yield "name", f"becomes a folder with each task's number, of more than {FILE_NAME_BYTES} bytes; shorten it"
    if error := text_error(f"{spec.output}/{longest}", PATH_BYTES):
        yield "output", f"with a task's folder in it {error}"


def conflict_errors(spec: JobSpec) -> list[str]:
    """Return all conflicts, each behind the path of the field that has to change."""
    errors = (
        *_conflicts(spec),
        *_mode_conflicts(spec),
        *pool_conflicts(spec),
        *sweep_conflicts(spec),
        *_staging_conflicts(spec),
        *_elastic_conflicts(spec),
        *_retry_conflicts(spec),
        *kind_conflicts(spec),
        *script_conflicts(spec),
    )
    return [f"{path}: {error}" for path, error in errors]


def _conflicts(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield the conflicts between the fields that all kinds of jobs have."""
    if spec.node_names:
        for path, value in (("pool", spec.pool), ("driver_version", spec.driver_version)):
            if value is not None:
                yield path, f"cannot be used with node_names, which already say where; remove {path} or node_names"
    if spec.driver_version is not None and not any(alternative.card_milli for alternative in spec.specs):
        yield "driver_version", "needs a spec with cards; add cards or remove driver_version"
    for index, alternative in enumerate(spec.specs[:MOST_SPECS]):
        if alternative.card_models and not alternative.card_milli:
            yield f"specs[{index}].card_models", "needs cards; add cards: 1 (or more), or remove card_models"
    # The default limit counts as 0: the user did not choose it, and a shorter one may still be set.
    least = (spec.begin_at or 0) + (0 if spec.limit_by_default else 1000 * spec.time_limit_seconds)
    if spec.begin_at is not None and spec.deadline_at is not None and spec.deadline_at < least:
        yield "deadline", "comes before begin_at and the time limit are over; make it later, or one of them smaller"
    yield from mount_conflicts(spec)
    for path, names in (("node_names", spec.node_names), ("partitions", spec.partitions)):
        for name in _repeated(names):
            yield path, f'the name "{visible(name)}" is there twice; each may be there once'


def _staging_conflicts(spec: JobSpec) -> Iterator[tuple[str, str]]:
    if not spec.staging:
        return
    if not spec.datasets:
        yield "staging", "has nothing to copy; add datasets, or remove staging"
    for index, each in enumerate(spec.datasets):
        if not each.read_only:
            yield f"datasets[{index}].read_only", "must be true with staging: what is written to a copy is lost"


def _mode_conflicts(spec: JobSpec) -> Iterator[tuple[str, str]]:
    if spec.mode is Mode.STANDALONE and spec.nodes != 1:
        others = ", ".join(mode for mode in Mode if mode is not Mode.STANDALONE)
        yield "mode", f"standalone has one node, and there are {spec.nodes}; write nodes: 1, or one of {others}"
    if spec.mode not in {None, Mode.STANDALONE} and spec.divide_over_clusters:
        yield "mode", "cannot be used with divide_over_clusters: containers of two clusters do not reach each other"


def _price_conflicts(elastic: Elastic) -> Iterator[tuple[str, str]]:
    if elastic.max_price_milli is not None and not elastic.spot:
        yield "elastic.max_price", "is for spot nodes; write spot: true, or remove it"
    if elastic.shrink_above_price and elastic.max_price_milli is None:
        yield "elastic.shrink_above_price", "is about max_price; give one, or remove it"


def _elastic_conflicts(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield the conflicts of an elastic job."""
    elastic = spec.elastic
    if elastic is None:
        return
    least, wanted, most = elastic.min_workers, elastic.workers, elastic.max_workers
    if least > wanted:
        yield "elastic.min_workers", f"{least} is more than the {wanted} workers that it starts with; give at most that"
    if most < wanted:
        yield "elastic.max_workers", f"{most} is less than the {wanted} workers that it starts with; give at least that"
    # The readers set `nodes` from `elastic`, so that only a file with both gets here.
    if spec.nodes != wanted:
        yield "nodes", f"{spec.nodes} is not elastic.workers ({wanted}), and each worker has a node; leave nodes out"
    yield from _price_conflicts(elastic)
    if elastic.supervised and not elastic.best_effort:
        yield "elastic.supervised", "is for best-effort workers only; all others are notified in any case; remove it"
    if elastic.best_effort and spec.exclusive:
        yield "exclusive", "cannot be used with elastic.best_effort, which asks for nothing; remove one of them"
    if elastic.launcher_selector and not spec.has_launcher:
        yield "elastic.launcher_selector", "is for jobs with a launcher; write mode: horovod, or remove it"
    if spec.divide_over_clusters:
        yield "elastic", "cannot be used with divide_over_clusters: a job that is divided keeps its size; remove one"


def _retry_conflicts(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield the conflicts between the ways to start a job again."""
    resume = spec.resume
    if spec.restart is not None and resume is not None:
        yield "restart", "cannot be used with resume, which restarts it too; remove one of them"
    # elif: with resume the elastic settings are resume's own, and one error is enough.
    elif spec.restart is not None and spec.elastic is not None:
        yield "restart", "cannot be used with elastic, which has a job_restart_policy; remove one of them"
    if resume is None:
        return
    if spec.pool is None:
        yield "resume", "needs a dedicated pool of nodes; add pool, or remove resume"
    if resume.elastic is not None and resume.elastic.min_nodes > spec.nodes:
        yield "resume.elastic.min_nodes", f"{resume.elastic.min_nodes} is more than the job's {spec.nodes} nodes"
    # The elastic settings of such a job are derived from `resume` (`formats.job.file`): any other ones were given.
    elif spec.elastic != resume.sizes(spec.nodes):
        yield "resume", "cannot be used with elastic; write resume.elastic with min_nodes, or remove one of them"


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
