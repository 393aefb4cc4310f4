"""Which part of Alibaba's elastic training a cluster lacks.

TrainingJobs run with the operator alone. What tells their workers of a reclaim, and suspends jobs that lack workers, is
the elastic job supervisor, which the component ack-arena installs from version 0.13.1 on, unless its values say no.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import re
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from cockpit.backends.kubernetes.objects.pod import Pod

SUPERVISOR_NAMESPACE = "arena-system"
OPERATOR_NAMESPACES = (SUPERVISOR_NAMESPACE, "kube-ai")
"""Where ack-arena and the operator's own installation put it."""
_SUPERVISOR, _OPERATOR = "elastic-job-supervisor", "et-operator"
_CONSEQUENCE = "elastic jobs are not warned before spot instances are reclaimed"
_COMPONENT = "ack-arena"
_LEAST = (0, 13, 1)
_CHARTS = frozenset({_COMPONENT, "arena-artifacts"})
"""The component's chart, and that of arena's own installation."""
_GPUS = "nvidia.com/gpu"
"""The resource by whose limit the operator counts a worker's slots where it is not told."""
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


class ArenaRelease(NamedTuple):
    """The installation of ack-arena, as Helm has it."""

    chart: str
    version: str
    has_supervisor: bool
    """Whether its values enable the elastic job supervisor, as they do by default."""


class _Release(msgspec.Struct, frozen=True):
    class _Chart(msgspec.Struct, frozen=True):
        class _Metadata(msgspec.Struct, frozen=True):
            name: str = ""
            version: str = ""

        metadata: _Metadata = _Metadata()

    chart: _Chart = _Chart()
    config: dict[str, Any] | None = None


def release_of(secrets: Iterable[Mapping[str, Any]]) -> ArenaRelease | None:
    """Return ack-arena's release out of Helm's Secrets; None: there is none, or none that can be read.

    Source: Helm 3, pkg/storage/driver: JSON, gzip, Base64, as the data of a Secret.
    """
    for secret in secrets:
        written = (secret.get("data") or {}).get("release", "")
        try:
            packed = base64.b64decode(base64.b64decode(written))
            release = msgspec.json.decode(gzip.decompress(packed), type=_Release)
        except (binascii.Error, OSError, EOFError, zlib.error, msgspec.DecodeError):
            continue
        chart = release.chart.metadata
        if chart.name in _CHARTS:
            values = (release.config or {}).get(_SUPERVISOR)
            enabled = values.get("enabled") if isinstance(values, dict) else None
            return ArenaRelease(chart.name, chart.version, enabled is not False)
    return None


def missing_supervisor(pods: Iterable[Pod], release: ArenaRelease | None = None) -> str:
    """Return what is wrong with the elastic job supervisor; empty: it runs. `pods`: at least those of its namespace.

    `release`: the installation that brings it; None: it is not known.
    """
    states = _states(pods, _SUPERVISOR, (SUPERVISOR_NAMESPACE,))
    if release is not None and (found := _VERSION.match(release.version)) is not None:
        version = (int(found[1]), int(found[2]), int(found[3]))
        if version < _LEAST:
            return (
                f"{release.chart} {release.version} is too old for {_SUPERVISOR}, so that {_CONSEQUENCE}; "
                "0.13.1 has it."
            )
    if "Running" in states:
        return ""
    if release is not None and not release.has_supervisor:
        return (
            f"{_SUPERVISOR} is switched off in the values of {release.chart} {release.version} "
            f"({_SUPERVISOR}.enabled), so that {_CONSEQUENCE}."
        )
    if not states:
        return f"{_SUPERVISOR} has no pods in {SUPERVISOR_NAMESPACE}, so that {_CONSEQUENCE}; ack-arena 0.13.1 has it."
    return f"{_SUPERVISOR} does not run in {SUPERVISOR_NAMESPACE} ({states[0]}), so that {_CONSEQUENCE}."


def missing_operator(pods: Iterable[Pod]) -> str:
    """Return that the elastic training operator does not run where it is installed usually; empty: it runs there."""
    states = _states(pods, _OPERATOR, OPERATOR_NAMESPACES)
    if "Running" in states:
        return ""
    if states:
        return f"{_OPERATOR} does not run ({states[0]})"
    return f"{_OPERATOR} has no pods in {' or '.join(OPERATOR_NAMESPACES)}"


def is_implied(field: str, spec: Mapping[str, Any]) -> bool:
    """Return whether an operator whose definition lacks this field of a TrainingJob does what it says by itself."""
    if field in {"restartPolicy", "backoffLimit"}:
        # Older operators restart no job.
        return bool(spec.get("restartPolicy") == "Never")
    if field != "slotsPerWorker":
        return False
    containers = spec["etReplicaSpecs"]["worker"]["template"]["spec"]["containers"]
    limits = (containers[0].get("resources") or {}).get("limits") or {}
    return str(spec[field]) == str(limits.get(_GPUS, 1))


def _states(pods: Iterable[Pod], app: str, namespaces: tuple[str, ...]) -> list[str]:
    return [pod.now.phase for pod in pods if pod.metadata.namespace in namespaces and pod.metadata.label("app") == app]
