"""A `gcloud ai custom-jobs create …` command line. Source: its reference page."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from cockpit.formats.foreign.customjob import read_pools
from cockpit.formats.foreign.draft import ENTRYPOINT, Draft, shell_words
from cockpit.formats.foreign.options import read_line

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec

_RELEASES: Final = frozenset({"alpha", "beta"})
_FLAGS: Final = frozenset({"enable-web-access", "enable-dashboard-access", "quiet", "q", "log-http"})


_COUNTS: Final = frozenset({"accelerator-count", "replica-count", "boot-disk-size"})
_KEYS: Final = {
    "machine-type": ("machineSpec", "machineType"),
    "accelerator-type": ("machineSpec", "acceleratorType"),
    "accelerator-count": ("machineSpec", "acceleratorCount"),
    "replica-count": ("", "replicaCount"),
    "boot-disk-type": ("diskSpec", "bootDiskType"),
    "boot-disk-size": ("diskSpec", "bootDiskSizeGb"),
    "container-image-uri": ("containerSpec", "imageUri"),
    "executor-image-uri": ("pythonPackageSpec", "executorImageUri"),
    "python-module": ("pythonPackageSpec", "pythonModule"),
    "script": ("", "script"),
}
"""Of a pool: the part of the API's pool, and the name in it."""


def is_gcloud(text: str) -> bool:
    try:
        words = shell_words(text)
    except ValueError:
        return False
    return words[:1] == ["gcloud"] and [word for word in words[1:5] if word not in _RELEASES][:3] == [
        "ai",
        "custom-jobs",
        "create",
    ]


def read_gcloud(text: str) -> Draft:
    words = [word for word in shell_words(text)[1:] if word not in _RELEASES]
    line = read_line(words[3:], _FLAGS)
    draft = Draft()
    pools: list[dict[str, Any]] = []
    command: list[str] = []
    arguments: list[str] = []
    for name, value in line.options:
        match name:
            case "display-name":
                draft.values["name"] = value
            case "worker-pool-spec":
                pools.append(_pool(value, len(pools), draft))
            case "command":
                command += value.split(",")
            case "args":
                arguments += value.split(",")
            case _:
                draft.lacks(f"--{name}" + (f"={value}" if value else ""))
    for pool in pools:
        _run(pool, command, arguments)
    read_pools(pools, draft)
    for word in line.rest:
        draft.lacks(word, "is no option of it; left out")
    return draft


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (each.partition("=") for each in text.split(",") if each)]


def _pool(text: str, index: int, draft: Draft) -> dict[str, Any]:
    """As the API writes it."""
    pool: dict[str, Any] = {}
    for name, value in _pairs(text):
        if name not in _KEYS:
            draft.lacks(f"--worker-pool-spec[{index}].{name}={value}")
            continue
        part, key = _KEYS[name]
        place = pool.setdefault(part, {}) if part else pool
        place[key] = int(value) if name in _COUNTS and value.isdigit() else value
    script = pool.pop("script", None)
    if script is not None:
        image = pool.pop("pythonPackageSpec", {}).get("executorImageUri")
        pool["containerSpec"] = {"imageUri": image, "command": ["python3", script]}
    return pool


def _run(pool: dict[str, Any], command: list[str], arguments: list[str]) -> None:
    """gcloud gives command and arguments to the containers of all pools."""
    if "containerSpec" in pool and command:
        pool["containerSpec"]["command"] = command
    for kind in ("containerSpec", "pythonPackageSpec"):
        if kind in pool and arguments:
            pool[kind]["args"] = arguments


def write_gcloud(spec: JobSpec) -> str:
    from cockpit.launch.customjob import custom_job_spec

    lines = ["gcloud ai custom-jobs create", f"--display-name={shlex.quote(spec.name)}"]
    pools = custom_job_spec(spec)["workerPoolSpecs"]
    lines += [f"--worker-pool-spec={shlex.quote(_pool_text(pool))}" for pool in pools]
    commands: list[list[str]] = [pool["containerSpec"].get("command", []) for pool in pools if pool]
    command = commands[0] if commands else []
    if command and command != [ENTRYPOINT]:
        lines.append(f"--command={shlex.quote(','.join(command))}")
    return " \\\n  ".join(lines) + "\n"


def _pool_text(pool: Mapping[str, Any]) -> str:
    if not pool:
        return ""
    machine, disk = pool["machineSpec"], pool.get("diskSpec", {})
    pairs = {
        "machine-type": machine["machineType"],
        "replica-count": pool["replicaCount"],
        "accelerator-type": machine.get("acceleratorType"),
        "accelerator-count": machine.get("acceleratorCount"),
        "boot-disk-type": disk.get("bootDiskType"),
        "boot-disk-size": disk.get("bootDiskSizeGb"),
        "container-image-uri": pool["containerSpec"].get("imageUri"),
    }
    return ",".join(f"{name}={value}" for name, value in pairs.items() if value is not None)
