"""What a job spec may say. The formats apply it when they read, the engine again to every request that arrives.

Every error is one sentence led by the field's path as a job file writes it: `specs[1].cards: …`. The bounds are far
above what clusters have; they keep a forged request from costing memory or time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.model.image import ImageKind, image_of
from cockpit.model.labels import key_error, value_error
from cockpit.model.names import name_error
from cockpit.model.rules.kinds import kind_checks, kind_conflicts
from cockpit.model.rules.mounts import mount_checks, mount_conflicts
from cockpit.model.rules.pools import (
    MOST_HELPERS,
    MOST_POOLS,
    pool_checks,
    pool_conflicts,
    sweep_checks,
    sweep_conflicts,
)
from cockpit.model.rules.text import COMMAND_BYTES, count_error, path_error, text_error, utf8_size
from cockpit.model.spec import (
    DAY_SECONDS,
    WHOLE_CARD,
    Array,
    Dependency,
    DependencyKind,
    JobSpec,
    Mode,
    NodeSpec,
)
from cockpit.model.text import is_visible, visible


class Bounds(NamedTuple):
    """A closed range of integers."""

    low: int
    high: int
    unit: str = ""

    def error(self, value: int) -> str | None:
        if self.low <= value <= self.high:
            return None
        return f"{visible(str(value))}{self.unit} is not between {self.low}{self.unit} and {self.high}{self.unit}"


NODES = Bounds(1, 10_000)
PARAMETER_SERVERS = Bounds(0, MOST_HELPERS)
CPUS = Bounds(1, 65_536)
MEMORY_MIB = Bounds(1, 1 << 30, " MiB")
CARDS = Bounds(0, 1024)
TIME_LIMIT_SECONDS = Bounds(1, 3660 * DAY_SECONDS, " s")
GRACE_SECONDS = Bounds(0, DAY_SECONDS, " s")
WAIT_SECONDS = Bounds(1, 366 * DAY_SECONDS, " s")
PRICE_MILLI = Bounds(0, 1_000_000_000)
"""Of a node, in thousandths of whatever its label counts in."""
WINDOW_SECONDS = Bounds(1, 366 * DAY_SECONDS, " s")
TOLERATION_SECONDS = Bounds(0, DAY_SECONDS, " s")
RESTARTS = Bounds(0, 1000)
"""Of restarts, and of resumes."""
NICE = SITE_FACTOR = Bounds(-2_147_483_645, 2_147_483_645)
"""As Slurm's."""
MOMENT = Bounds(0, 253_402_300_799_999, " ms")
"""1970 to 9999."""
ARRAY_INDEX = Bounds(0, 4_000_000)
"""As Slurm's largest MaxArraySize."""
DIRECT_PRIORITY = Bounds(1, (1 << 32) - 2)
"""Of a priority that an administrator sets; 0 means held in Slurm, and has a verb of its own here."""

MOST_SPECS = 64
MOST_CARD_MODELS = 64
MOST_PINS = NODES.high
MOST_LABELS = 64
MOST_VARIABLES = 1000
MOST_PARTITIONS = 64
MOST_DEPENDENCIES = 1000
MOST_TASKS = 100_000
"""Of one array; nothing larger is even counted out."""
LABEL_LENGTH = 253
VALUE_BYTES = 64 * 1024
"""Of one environment variable; Linux takes 128 KiB for `NAME=value`."""
ENVIRONMENT_BYTES = 512 * 1024
"""Of all of them; with the command it must fit into Linux's two MiB for a new program."""

VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]{0,254}$"
_VARIABLE = re.compile(VARIABLE_PATTERN)

_Checks = Iterator[tuple[str, str | None]]


def spec_errors(spec: JobSpec) -> list[str]:
    """Everything that is wrong with a spec but the command's grammar (`launch.command`)."""
    return [*field_errors(spec), *conflict_errors(spec)]


def field_errors(spec: JobSpec) -> list[str]:
    """What is wrong with single fields."""
    return [f"{path}: {error}" for path, error in _checks(spec) if error]


def conflict_errors(spec: JobSpec) -> list[str]:
    """What is wrong between fields that are each fine."""
    found = (
        *_conflicts(spec),
        *_mode_conflicts(spec),
        *pool_conflicts(spec),
        *sweep_conflicts(spec),
        *_staging_conflicts(spec),
        *_elastic_conflicts(spec),
        *_again_conflicts(spec),
        *kind_conflicts(spec),
    )
    return [f"{path}: {error}" for path, error in found]


def _checks(spec: JobSpec) -> _Checks:
    yield "name", name_error(spec.name)
    yield from kind_checks(spec)
    yield "output", path_error(spec.output)
    yield from mount_checks(spec)
    yield "nodes", NODES.error(spec.nodes)
    yield "specs", count_error(len(spec.specs), MOST_SPECS, least=1)
    for index, alternative in enumerate(spec.specs[:MOST_SPECS]):
        bare = spec.is_best_effort and alternative.cpus == alternative.memory_mib == 0
        asked = replace(alternative, cpus=CPUS.low, memory_mib=MEMORY_MIB.low) if bare else alternative
        yield from node_spec_checks(f"specs[{index}]", asked)
    yield from _label_checks("node_names", spec.node_names, MOST_PINS)
    for path, label in (("pool", spec.pool), ("driver_version", spec.driver_version)):
        if label is not None:
            yield path, label_error(label)
    yield from _label_pair_checks(spec)
    yield from _elastic_checks(spec)
    yield "time_limit", TIME_LIMIT_SECONDS.error(spec.time_limit_seconds)
    yield "grace_period", GRACE_SECONDS.error(spec.grace_seconds)
    yield "failover.toleration_seconds", TOLERATION_SECONDS.error(spec.failover.toleration_seconds)
    if spec.debug_hold.allocation is not None:
        yield "debug_hold.allocation", "is for Slurm clusters; here `cards` says what a failed job keeps"
    if spec.debug_hold.window_seconds is not None:
        yield "debug_hold.window", WINDOW_SECONDS.error(spec.debug_hold.window_seconds)
    yield from _again_checks(spec)
    yield "image", image_error(spec.image)
    yield "parameter_servers", PARAMETER_SERVERS.error(spec.parameter_servers)
    if spec.worker_pools:
        yield from _pool_checks(spec)
    if spec.sweep is not None:
        yield from sweep_checks(spec.sweep)
    yield from _env_checks(spec.env)
    if spec.project is not None:
        yield "project", name_error(spec.project)
    yield from _scheduling_checks(spec)


def _scheduling_checks(spec: JobSpec) -> _Checks:
    """Where and when it may start, and who pays."""
    for path, label in (("account", spec.account), ("qos", spec.qos), ("reservation", spec.reservation or None)):
        if label is not None:
            yield path, label_error(label)
    yield from _label_checks("partitions", spec.partitions, MOST_PARTITIONS)
    yield "nice", NICE.error(spec.nice)
    for path, moment in (("begin_at", spec.begin_at), ("deadline", spec.deadline_at)):
        if moment is not None:
            yield path, MOMENT.error(moment)
    yield "dependencies", count_error(len(spec.dependencies), MOST_DEPENDENCIES)
    for index, dependency in enumerate(spec.dependencies[:MOST_DEPENDENCIES]):
        yield f"dependencies[{index}]", _dependency_error(dependency)
    if spec.array is not None:
        yield "array", _array_error(spec.array)


def _dependency_error(dependency: Dependency) -> str | None:
    alone = dependency.kind is DependencyKind.SINGLETON
    if dependency.task is not None and (error := ARRAY_INDEX.error(dependency.task)):
        return error
    if alone == (dependency.job == 0) and dependency.job >= 0 and not (alone and dependency.task is not None):
        return None
    return "singleton stands alone, without a job" if alone else f"{dependency.kind} needs a job: {dependency.kind}:123"


def _array_error(array: Array) -> str | None:
    if not 1 <= len(array.indices) <= MOST_TASKS:
        return f"has {len(array.indices)} tasks; give 1 to {MOST_TASKS}"
    if any(later <= earlier for earlier, later in pairwise(array.indices)):
        return "names its tasks out of order or twice; name each once, lowest first"
    outside = (ARRAY_INDEX.error(index) for index in (array.indices[0], array.indices[-1]))
    return next(filter(None, outside), None) or Bounds(0, MOST_TASKS).error(array.at_once)


def node_spec_checks(at: str, spec: NodeSpec) -> _Checks:
    if spec.name:
        yield f"{at}.name", name_error(spec.name)
    yield f"{at}.cpus", CPUS.error(spec.cpus)
    yield f"{at}.memory", MEMORY_MIB.error(spec.memory_mib)
    yield f"{at}.cards", cards_error(spec.card_milli)
    yield from _label_checks(f"{at}.card_models", spec.card_models, MOST_CARD_MODELS)


def _elastic_checks(spec: JobSpec) -> _Checks:
    if spec.elastic is not None:
        for name in ("workers", "min_workers", "max_workers"):
            yield f"elastic.{name}", NODES.error(getattr(spec.elastic, name))
        yield "elastic.backoff_limit", RESTARTS.error(spec.elastic.backoff_limit)
        if spec.elastic.grace_seconds is not None:
            yield "elastic.grace_period", GRACE_SECONDS.error(spec.elastic.grace_seconds)
        yield "elastic.max_wait_time", WAIT_SECONDS.error(spec.elastic.max_wait_seconds)
        if spec.elastic.max_price_milli is not None:
            yield "elastic.max_price", PRICE_MILLI.error(spec.elastic.max_price_milli)
        yield from _selector_checks("elastic.launcher_selector", spec.elastic.launcher_selector)


def _again_checks(spec: JobSpec) -> _Checks:
    """What happens around its command, and after it has failed."""
    if spec.restart is not None:
        yield "restart.max_restarts", RESTARTS.error(spec.restart.max_restarts)
    if spec.resume is not None:
        yield "resume.max_resumes", RESTARTS.error(spec.resume.max_resumes)
        yield "resume.grace_period", GRACE_SECONDS.error(spec.resume.grace_seconds)
        if spec.resume.elastic is not None:
            yield "resume.elastic.min_nodes", NODES.error(spec.resume.elastic.min_nodes)
        if spec.resume.performance is not None:
            yield "resume.performance.threshold", threshold_error(spec.resume.performance.threshold)
    for name in ("before_start", "after_end"):
        yield f"hooks.{name}", text_error(getattr(spec.hooks, name), VALUE_BYTES, least=0)


def _pool_checks(spec: JobSpec) -> _Checks:
    yield from pool_checks(spec.worker_pools)
    for index, pool in enumerate(spec.worker_pools[:MOST_POOLS]):
        at = f"worker_pools[{index}]"
        yield from node_spec_checks(f"{at}.spec", pool.spec)
        yield f"{at}.command", text_error(pool.command, COMMAND_BYTES, least=0)
        yield f"{at}.image", image_error(pool.image) if pool.image else None
        for name, label in (("machine_type", pool.machine_type), ("disk_type", pool.disk_type)):
            yield f"{at}.{name}", label_error(label) if label else None


def _label_checks(at: str, labels: tuple[str, ...], most: int) -> _Checks:
    yield at, count_error(len(labels), most)
    for index, label in enumerate(labels[:most]):
        yield f"{at}[{index}]", label_error(label)


def _label_pair_checks(spec: JobSpec) -> _Checks:
    """Of the nodes that it may be on."""
    yield from _selector_checks("node_selector", spec.node_selector)
    yield "tolerations", count_error(len(spec.tolerations), MOST_LABELS)
    for index, each in enumerate(spec.tolerations[:MOST_LABELS]):
        error = (key_error(each.key) if each.key else None) or value_error(each.value or "")
        lost = not each.key and each.value is not None
        yield f"tolerations[{index}]", "has a value without a key; give both" if lost else error


def _selector_checks(at: str, labels: dict[str, str]) -> _Checks:
    yield at, count_error(len(labels), MOST_LABELS)
    if len(labels) <= MOST_LABELS:
        for key, value in labels.items():
            yield f"{at}.{visible(key)}", key_error(key) or value_error(value)


def _env_checks(env: dict[str, str]) -> _Checks:
    if not env:
        return
    if len(env) > MOST_VARIABLES:
        yield "env", count_error(len(env), MOST_VARIABLES)
        return
    for name, value in env.items():
        yield f"env.{visible(name)}", variable_error(name) or text_error(value, VALUE_BYTES, least=0)
    size = sum(utf8_size(name) + utf8_size(value) for name, value in env.items())
    if size > ENVIRONMENT_BYTES:
        yield "env", f"has {size} bytes in all; use at most {ENVIRONMENT_BYTES}, and files for what is larger"


def _conflicts(spec: JobSpec) -> Iterator[tuple[str, str]]:
    if spec.node_names:
        for path, value in (("pool", spec.pool), ("driver_version", spec.driver_version)):
            if value is not None:
                yield path, f"cannot stand beside node_names, which already say where; remove {path} or node_names"
    if spec.driver_version is not None and not any(alternative.card_milli for alternative in spec.specs):
        yield "driver_version", "needs a spec with cards; add cards or remove driver_version"
    for index, alternative in enumerate(spec.specs[:MOST_SPECS]):
        if alternative.card_models and not alternative.card_milli:
            yield f"specs[{index}].card_models", "needs cards; add cards: 1 (or more), or remove card_models"
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
        yield "mode", "cannot stand beside divide_over_clusters: containers of two clusters do not reach each other"


def _elastic_conflicts(spec: JobSpec) -> Iterator[tuple[str, str]]:
    elastic = spec.elastic
    if elastic is None:
        return
    least, wanted, most = elastic.min_workers, elastic.workers, elastic.max_workers
    if least > wanted:
        yield "elastic.min_workers", f"{least} is more than the {wanted} workers that it starts with; give at most that"
    if most < wanted:
        yield "elastic.max_workers", f"{most} is less than the {wanted} workers that it starts with; give at least that"
    if spec.nodes != wanted:
        yield "nodes", f"{spec.nodes} is not elastic.workers ({wanted}), and each worker has a node; leave nodes out"
    if elastic.max_price_milli is not None and not elastic.spot:
        yield "elastic.max_price", "is for spot nodes; write spot: true, or remove it"
    if elastic.supervised and not elastic.best_effort:
        yield "elastic.supervised", "is for best-effort workers, all others are told anyway; remove it"
    if elastic.best_effort and spec.exclusive:
        yield "exclusive", "cannot stand beside elastic.best_effort, which asks for nothing; remove one of them"
    if elastic.launcher_selector and not spec.has_launcher:
        yield "elastic.launcher_selector", "is for jobs with a launcher; write mode: horovod, or remove it"
    if spec.divide_over_clusters:
        yield "elastic", "cannot stand beside divide_over_clusters: a job that is divided keeps its size; remove one"


def _again_conflicts(spec: JobSpec) -> Iterator[tuple[str, str]]:
    resume = spec.resume
    if spec.restart is not None and resume is not None:
        yield "restart", "cannot stand beside resume, which begins it again too; remove one of them"
    elif spec.restart is not None and spec.elastic is not None:
        yield "restart", "cannot stand beside elastic, which has a job_restart_policy; remove one of them"
    if resume is None:
        return
    if spec.pool is None:
        yield "resume", "needs a dedicated pool of nodes; add pool, or remove resume"
    if resume.elastic is not None and resume.elastic.min_nodes > spec.nodes:
        yield "resume.elastic.min_nodes", f"{resume.elastic.min_nodes} is more than the job's {spec.nodes} nodes"
    elif spec.elastic != resume.sizes(spec.nodes):
        yield "resume", "cannot stand beside elastic; write resume.elastic with min_nodes, or remove one of them"


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def cards_error(milli: int) -> str | None:
    """Cards are whole, or one share below 1."""
    if milli < 0 or milli > CARDS.high * WHOLE_CARD:
        return f"{milli / WHOLE_CARD:g} is not between {CARDS.low} and {CARDS.high}"
    if milli > WHOLE_CARD and milli % WHOLE_CARD:
        return f"{milli / WHOLE_CARD:g} is neither whole nor a share below 1; ask for {-(-milli // WHOLE_CARD)}"
    return None


def threshold_error(threshold: float) -> str | None:
    """Of hardware time to end-to-end time, whose part it is."""
    if 0 < threshold <= 1:
        return None
    return f"{threshold:g} is not above 0 and at most 1: hardware time is a part of end-to-end time"


def image_error(text: str) -> str | None:
    """`host`, a path behind `dir:` or `tar:`, or a name that no command takes for an option."""
    kind, where = image_of(text)
    if kind is ImageKind.HOST:
        return None
    if kind is not ImageKind.NAMED:
        return path_error(where)
    if not text:
        return "is empty; give one"
    if text.startswith("-"):
        return f'"{visible(text)}" begins with "-"; write host, dir:PATH, tar:PATH or the name of an image'
    return label_error(text)


def label_error(text: str) -> str | None:
    """A node, pool, card model or driver as another system names it."""
    if not text or len(text) > LABEL_LENGTH:
        return f"has {len(text)} characters; give 1 to {LABEL_LENGTH}"
    return None if is_visible(text) else f'"{visible(text)}" contains characters that cannot be seen; remove them'


def variable_error(name: str) -> str | None:
    if _VARIABLE.match(name) and not name.endswith("\n"):
        return None
    return f'"{visible(name)}" is no variable name; use letters, digits and "_", not beginning with a digit'
