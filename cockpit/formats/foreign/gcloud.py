"""A `gcloud ai custom-jobs create …` command line. Source: its reference page."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from cockpit.formats.foreign.commandlines import command_line, read_line, refuse_expansions
from cockpit.formats.foreign.customjob import camel, listed, read_custom_job
from cockpit.formats.foreign.draft import Draft
from cockpit.formats.foreign.pods import take_labels
from cockpit.launch.command import ENTRYPOINT
from cockpit.model.text import is_whole

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec

_RELEASES: Final = frozenset({"alpha", "beta"})
_FLAGS: Final = frozenset({"enable-web-access", "enable-dashboard-access", "quiet", "q", "log-http"})


_READ: Final = frozenset({"display-name", "config", "worker-pool-spec", "command", "args", "labels"})
"""Options that say something about a job here."""
_DELIMITED: Final = re.compile(r"\^(?P<delimiter>[^^]+)\^")
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
"""The keys of a worker pool: the part of the API's pool, and the name in it."""


def is_gcloud(text: str) -> bool:
    """Return whether a text is a `gcloud ai custom-jobs create` line, of any release."""
    try:
        words, _ = command_line(text)
    except ValueError:
        return False
    return words[:1] == ["gcloud"] and [word for word in words[1:5] if word not in _RELEASES][:3] == [
        "ai",
        "custom-jobs",
        "create",
    ]


def read_gcloud(text: str, configured: Callable[[str], Mapping[str, Any]]) -> Draft:
    """Read a `gcloud ai custom-jobs create` line.

    `configured`: the document of the file that `--config` names. What the line says itself comes before it.
    """
    words, rest = command_line(text)
    line = read_line([word for word in words[1:] if word not in _RELEASES][3:], _FLAGS)
    left_out = Draft()
    left_out.lacks_behind(rest)
    refuse_expansions(text, [each for each in line.options if each[0] in _READ], left_out)
    job: dict[str, Any] = {}
    pools: list[dict[str, Any]] = []
    name, command, arguments = "", list[str](), list[str]()
    for option, value in line.options:
        match option:
            case "display-name":
                name = value
            case "config":
                job, name = _take_config(camel(configured(value)), name, left_out)
            case "worker-pool-spec":
                pools.append(_pool(value, len(pools), left_out))
            case "command":
                command += _items(value)
            case "args":
                arguments += _items(value)
            case "labels":
                take_labels(dict(_pairs(value)), "--labels", left_out)
            case _:
                left_out.lacks(f"--{option}" + (f"={value}" if value else ""))
    for word in line.rest:
        left_out.lacks(word, "is no option of it; left out")
    # As in gcloud, pools on the line replace those of the file and are not merged with them.
    job["workerPoolSpecs"] = pools or listed(job.get("workerPoolSpecs", []))
    for pool in job["workerPoolSpecs"]:
        _run(pool, command, arguments)
    draft = read_custom_job({"displayName": name, "jobSpec": job})
    # Notes of the line first, in the order of the line.
    draft.notes[:0] = left_out.notes
    draft.errors[:0] = left_out.errors
    draft.values |= left_out.values
    return draft


def _take_config(whole: dict[str, Any], name: str, draft: Draft) -> tuple[dict[str, Any], str]:
    """Return the specification of a job, also from a CustomJob, and the name for a line that gives none."""
    job = whole.pop("jobSpec", None)
    if not isinstance(job, dict):
        return whole, name
    name = name or str(whole.pop("displayName", "") or "")
    take_labels(whole.pop("labels", None) or {}, "labels", draft)
    for left in whole:
        draft.lacks(str(left))
    return job, name


def _items(text: str) -> list[str]:
    """Return the items of gcloud's form of a list: between commas, or after `^:^` between colons. Source: `gcloud topic
    escaping`."""
    if match := _DELIMITED.match(text):
        return text[match.end() :].split(match["delimiter"])
    return text.split(",")


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (each.partition("=") for each in _items(text) if each)]


def _list_text(items: Sequence[str]) -> str:
    """Return a list in a form that reads back as these items, whatever they contain."""
    text = "".join(items)
    # A list that starts with `^` would be read as one with another delimiter.
    if "," not in text and not (items and items[0].startswith("^")):
        return ",".join(items)
    delimiter = next(each for each in _delimiters() if each not in text)
    return f"^{delimiter}^{delimiter.join(items)}"


def _delimiters() -> Iterator[str]:
    yield from "|;:#@~!%"
    for number in count():
        yield f"|{number}|"


def _pool(text: str, index: int, draft: Draft) -> dict[str, Any]:
    """Return the pool in the API's form."""
    pool: dict[str, Any] = {}
    for name, value in _pairs(text):
        if name not in _KEYS:
            draft.lacks(f"--worker-pool-spec[{index}].{name}={value}")
            continue
        part, key = _KEYS[name]
        place = pool.setdefault(part, {}) if part else pool
        place[key] = int(value) if name in _COUNTS and is_whole(value) else value
    # gcloud builds an image that has this script; nothing is built here.
    script = pool.pop("script", None)
    if script is not None:
        image = pool.pop("pythonPackageSpec", {}).get("executorImageUri")
        pool["containerSpec"] = {"imageUri": image, **pool.get("containerSpec", {}), "command": ["python3", script]}
    return pool


def _run(pool: dict[str, Any], command: list[str], arguments: list[str]) -> None:
    """Set command and arguments, which gcloud gives to the containers of all pools."""
    # An empty pool stays empty: it only keeps its position.
    if pool and not {"containerSpec", "pythonPackageSpec"} & pool.keys():
        pool["containerSpec"] = {}
    if "containerSpec" in pool and command:
        pool["containerSpec"]["command"] = command
    for kind in ("containerSpec", "pythonPackageSpec"):
        if kind in pool and arguments:
            pool[kind]["args"] = arguments


def write_gcloud(spec: JobSpec) -> str:
    """Return the `gcloud ai custom-jobs create` line of a job."""
    from cockpit.launch.pools import custom_job_spec

    lines = ["gcloud ai custom-jobs create", f"--display-name={shlex.quote(spec.name)}"]
    pools = custom_job_spec(spec)["workerPoolSpecs"]
    lines += [f"--worker-pool-spec={shlex.quote(_pool_text(pool))}" for pool in pools]
    # The line has one command for all pools. Where pools differ, reading the line again shows that, and
    # `exchange.written` notes it as lost.
    commands: list[list[str]] = [pool["containerSpec"].get("command", []) for pool in pools if pool]
    command = commands[0] if commands else []
    if command and command[0] != ENTRYPOINT:
        lines.append(f"--command={shlex.quote(_list_text(command))}")
    # The image's own ENTRYPOINT, with arguments: only these can be given.
    elif len(command) > 1:
        lines.append(f"--args={shlex.quote(_list_text(command[1:]))}")
    if spec.labels:
        lines.append(f"--labels={shlex.quote(_list_text([f'{key}={value}' for key, value in spec.labels.items()]))}")
    return " \\\n  ".join(lines) + "\n"


def _pool_text(pool: Mapping[str, Any]) -> str:
    """Return the value of --worker-pool-spec; empty for a role that is left out."""
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
        # Command and arguments are given once for all pools (`--command`, `--args`); a pool's own key is the image.
        "container-image-uri": pool["containerSpec"].get("imageUri"),
    }
    return _list_text([f"{name}={value}" for name, value in pairs.items() if value is not None])
