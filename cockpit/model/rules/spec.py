"""The rules for a job spec. The formats apply them when they read, the engine again to every request.

Every error is one sentence led by the field's path as a job file writes it: `specs[1].cards: …`. The bounds are far
above what clusters have; they keep a forged request from costing memory or time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from msgspec.structs import replace

from cockpit.model.image import ImageKind, image_of
from cockpit.model.labels import key_error, value_error
from cockpit.model.masking import is_masked_value
from cockpit.model.names import name_error
from cockpit.model.rules.batchscript import script_checks
from cockpit.model.rules.bounds import (
    ARRAY_INDEX,
    CARDS,
    CPUS,
    ENVIRONMENT_BYTES,
    GRACE_SECONDS,
    LABEL_LENGTH,
    MEMORY_MIB,
    MOMENT,
    MOST_CARD_MODELS,
    MOST_DEPENDENCIES,
    MOST_LABELS,
    MOST_PARTITIONS,
    MOST_PINS,
    MOST_SPECS,
    MOST_TASKS,
    MOST_VARIABLES,
    NICE,
    NODES,
    PARAMETER_SERVERS,
    PRICE_MILLI,
    RESTARTS,
    TIME_LIMIT_SECONDS,
    TOLERATION_SECONDS,
    VALUE_BYTES,
    VARIABLE_PATTERN,
    WAIT_SECONDS,
    WINDOW_SECONDS,
    Bounds,
)
from cockpit.model.rules.conflicts import conflict_errors, kind_checks
from cockpit.model.rules.mounts import mount_checks
from cockpit.model.rules.pools import MOST_POOLS, pool_checks, sweep_checks
from cockpit.model.rules.text import COMMAND_BYTES, count_error, path_error, text_error, utf8_size
from cockpit.model.secret_signs import MASK
from cockpit.model.spec import WHOLE_CARD, Array, Dependency, DependencyKind, JobSpec, NodeSpec
from cockpit.model.text import is_visible, visible

_VARIABLE = re.compile(VARIABLE_PATTERN)

_Checks = Iterator[tuple[str, str | None]]


def spec_errors(spec: JobSpec) -> list[str]:
    """Return everything that is wrong with a spec but the command's grammar (`launch.command`)."""
    return [*field_errors(spec), *conflict_errors(spec)]


def field_errors(spec: JobSpec) -> list[str]:
    """Return what is wrong with single fields."""
    return [f"{path}: {error}" for path, error in _checks(spec) if error]


def _checks(spec: JobSpec) -> _Checks:
    """Yield the path of each field with what is wrong with it, None for nothing."""
    yield "name", name_error(spec.name)
    yield from kind_checks(spec)
    yield "output", path_error(spec.output)
    yield from mount_checks(spec)
    yield "nodes", NODES.error(spec.nodes)
    yield "specs", count_error(len(spec.specs), MOST_SPECS, least=1)
    # Only as many as are allowed: a forged list must not cost time beyond its one error.
    for index, alternative in enumerate(spec.specs[:MOST_SPECS]):
        bare = spec.is_best_effort and alternative.cpus == alternative.memory_mib == 0
        # A best-effort job may request nothing; the bounds are then tested with the least amounts instead of 0.
        requested = replace(alternative, cpus=CPUS.low, memory_mib=MEMORY_MIB.low) if bare else alternative
        yield from node_spec_checks(f"specs[{index}]", requested)
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
    yield from _retry_checks(spec)
    yield "image", image_error(spec.image)
    yield "parameter_servers", PARAMETER_SERVERS.error(spec.parameter_servers)
    if spec.worker_pools:
        yield from _pool_checks(spec)
    if spec.sweep is not None:
        yield from sweep_checks(spec.sweep)
    yield from _env_checks(spec.env)
    if spec.script is not None:
        yield from script_checks(spec.script)
    if spec.project is not None:
        yield "project", name_error(spec.project)
    yield from _scheduling_checks(spec)


def _scheduling_checks(spec: JobSpec) -> _Checks:
    """Return what is wrong with the fields about where and when the job may start, and which account pays."""
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
    # Exactly one of both: `singleton` without a job, or another kind with one.
    if alone == (dependency.job == 0) and dependency.job >= 0 and not (alone and dependency.task is not None):
        return None
    return "singleton takes no job" if alone else f"{dependency.kind} needs a job: {dependency.kind}:123"


def _array_error(array: Array) -> str | None:
    if not 1 <= len(array.indices) <= MOST_TASKS:
        return f"has {len(array.indices)} tasks; give 1 to {MOST_TASKS}"
    if any(later <= earlier for earlier, later in pairwise(array.indices)):
        return "names its tasks out of order or twice; name each once, lowest first"
    # The indices ascend, so the first and the last one bound all others.
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
    """Yield the checks of the fields below `elastic`."""
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


def _retry_checks(spec: JobSpec) -> _Checks:
    """Return what is wrong with the fields about hooks, restarts and resumes."""
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
    """Yield the checks of the fields of worker pools."""
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
    """Return what is wrong with the job's own labels, and with the labels that it selects nodes by."""
    yield from _selector_checks("labels", spec.labels)
    yield from _selector_checks("node_selector", spec.node_selector)
    yield "tolerations", count_error(len(spec.tolerations), MOST_LABELS)
    for index, each in enumerate(spec.tolerations[:MOST_LABELS]):
        # An empty key tolerates every taint.
        error = (key_error(each.key) if each.key else None) or value_error(each.value or "")
        lost = not each.key and each.value is not None
        yield f"tolerations[{index}]", "has a value without a key; give both" if lost else error


def _selector_checks(at: str, labels: dict[str, str]) -> _Checks:
    yield at, count_error(len(labels), MOST_LABELS)
    if len(labels) <= MOST_LABELS:
        for key, value in labels.items():
            yield f"{at}.{visible(key)}", key_error(key) or value_error(value)


def _env_checks(env: dict[str, str]) -> _Checks:
    """Yield the checks of the job's variables."""
    if not env:
        return
    # Returns here: a message for each of a million variables helps no user.
    if len(env) > MOST_VARIABLES:
        yield "env", count_error(len(env), MOST_VARIABLES)
        return
    for name, value in env.items():
        yield f"env.{visible(name)}", variable_error(name) or text_error(value, VALUE_BYTES, least=0)
        if is_masked_value(value):
            yield (
                f"env.{visible(name)}",
                f"has {MASK} in place of a secret; write the true value or remove the variable",
            )
    size = sum(utf8_size(name) + utf8_size(value) for name, value in env.items())
    if size > ENVIRONMENT_BYTES:
        yield "env", f"has {size} bytes in all; use at most {ENVIRONMENT_BYTES}, and files for what is larger"


def cards_error(milli: int) -> str | None:
    """Return what is wrong with a number of cards: it must be whole, or one share below 1."""
    if milli < 0 or milli > CARDS.high * WHOLE_CARD:
        return f"{milli / WHOLE_CARD:g} is not between {CARDS.low} and {CARDS.high}"
    if milli > WHOLE_CARD and milli % WHOLE_CARD:
        return f"{milli / WHOLE_CARD:g} is neither whole nor a share below 1; ask for {-(-milli // WHOLE_CARD)}"
    return None


def threshold_error(threshold: float) -> str | None:
    """Return what is wrong with a threshold for the share of hardware time in end-to-end time."""
    if 0 < threshold <= 1:
        return None
    return f"{threshold:g} is not above 0 and at most 1: hardware time is a part of end-to-end time"


def image_error(text: str) -> str | None:
    """Return the error of an image that is not `host`, a path after `dir:` or `tar:`, or a name that no command takes
    for an option; None: it is valid."""
    kind, where = image_of(text)
    if kind is ImageKind.HOST:
        return None
    if kind is not ImageKind.NAMED:
        return path_error(where)
    if not text:
        return "is empty; give one"
    # The name is an argument of podman.
    if text.startswith("-"):
        return f'"{visible(text)}" begins with "-"; write host, dir:PATH, tar:PATH or the name of an image'
    return label_error(text)


def label_error(text: str) -> str | None:
    """Return the error of a name that another system gives to a node, pool, card model or driver; None: it is valid."""
    if not text or len(text) > LABEL_LENGTH:
        return f"has {len(text)} characters; give 1 to {LABEL_LENGTH}"
    return None if is_visible(text) else f'"{visible(text)}" contains characters that cannot be seen; remove them'


def variable_error(name: str) -> str | None:
    # `$` in the pattern also matches before a last line break.
    if _VARIABLE.match(name) and not name.endswith("\n"):
        return None
    return f'"{visible(name)}" is no variable name; use letters, digits and "_", not beginning with a digit'
