"""Reads the size of a node out of the options of sbatch: Slurm counts tasks, cockpit nodes. Source: sbatch(1)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

from cockpit.formats.foreign.draft import Draft, upwards
from cockpit.model.text import is_whole

_MEMORY: Final = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<unit>[KMGTkmgt]?)[Bb]?")
_MIB_OF: Final = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024 * 1024}
SIZES: Final = frozenset(
    {"nodes", "ntasks", "ntasks-per-node", "cpus-per-task", "mem", "mem-per-cpu", "mem-per-gpu"}
    | {"mincpus", "distribution", "gpus", "gpus-per-node", "gpus-per-task", "gres", "cpus-per-gpu"}
)
TASKS: Final = {
    "cpus-per-task": "SLURM_CPUS_PER_TASK",
    "ntasks": "SLURM_NTASKS",
    "ntasks-per-node": "SLURM_NTASKS_PER_NODE",
}
"""Options that count tasks, and their variables in the script."""
_AS_REQUESTED: Final = {
    "gpus": "SLURM_GPUS",
    "gpus-per-node": "SLURM_GPUS_PER_NODE",
    "gpus-per-task": "SLURM_GPUS_PER_TASK",
    "cpus-per-gpu": "SLURM_CPUS_PER_GPU",
    "distribution": "SLURM_DISTRIBUTION",
}
"""Options that the script and its steps see as they were requested."""
MEMORY_SHARES: Final = {"mem-per-cpu": "SLURM_MEM_PER_CPU", "mem-per-gpu": "SLURM_MEM_PER_GPU"}


def _whole(options: Mapping[str, str], name: str) -> int | None:
    value = options.get(name, "")
    return int(value) if is_whole(value) and int(value) else None


def take_size(options: Mapping[str, str], draft: Draft) -> None:
    """Read the number of nodes and the resources of each: Slurm counts tasks, cockpit nodes."""
    wanted = options.get("nodes", "")
    least, dash, _ = wanted.partition("-")
    if dash:
        draft.lacks(f"--nodes={wanted}", "the smaller number is taken")
    nodes = int(least) if is_whole(least) and int(least) else 1
    if "nodes" in options:
        draft.values["nodes"] = nodes
    # Slurm distributes tasks evenly; the fullest node decides, since all nodes of a job here are alike.
    per_node = _whole(options, "ntasks-per-node") or math.ceil((_whole(options, "ntasks") or nodes) / nodes)
    each = _whole(options, "cpus-per-task")
    cards, model = _cards(options, nodes, per_node)
    for name, variable in _AS_REQUESTED.items():
        if name in options:
            draft.env(variable, options[name])
    # None: the default of a job file, one CPU, is that of sbatch as well.
    cpus = per_node * (each or 1) if {"ntasks", "ntasks-per-node", "cpus-per-task"} & options.keys() else None
    cpus = max(cpus or 0, _whole(options, "mincpus") or 0) or None
    # --cpus-per-task and --cpus-per-gpu exclude each other in sbatch(1); the first one wins here.
    if each is None and (per_card := _whole(options, "cpus-per-gpu")):
        cpus = max(cpus or 0, per_card * cards) or None
    draft.spec(cpus=cpus, memory=_memory(options, cpus or 1, cards, draft), cards=cards or None)
    draft.spec(card_models=[model] if model else None)
    for name, variable in TASKS.items():
        if number := _whole(options, name):
            draft.env(variable, str(number))


def _cards(options: Mapping[str, str], nodes: int, tasks: int) -> tuple[int, str]:
    """Return the number of cards per node, and their model."""
    for name, share in (("gpus-per-node", 1.0), ("gpus-per-task", float(tasks)), ("gpus", 1 / nodes)):
        if value := options.get(name):
            count, model = _of_one_model(f"--{name}={value}", _split_counts(value))
            # --gpus counts the whole job, the others a node or a task; rounded up, so that each node has enough.
            return math.ceil(count * share), model
    # --gres counts for each node, like --gpus-per-node; options about cards alone come first.
    wanted = [each for each in gres(options) if each.partition(":")[0] == "gpu"]
    text = ",".join(each.partition(":")[2] for each in wanted)
    return _of_one_model(f"--gres={options['gres']}", _split_counts(text)) if wanted else (0, "")


def gres(options: Mapping[str, str]) -> list[str]:
    """Return each generic resource, without the socket binding that Slurm permits behind it."""
    return [each for each in re.sub(r"\([^)]*\)", "", options.get("gres", "")).split(",") if each]


def _of_one_model(text: str, counts: list[tuple[str, int]]) -> tuple[int, str]:
    """Return the number of cards and their model; the model is empty where any will do."""
    models = {model for model, _ in counts}
    if len(models) > 1:
        names = " and ".join(sorted(model or "any model" for model in models))
        raise ValueError(
            f"{text} asks for cards of several models ({names}) on one node, and a node of a job has cards of one "
            "model; write one of them, or submit a job for each"
        )
    return sum(count for _, count in counts), next(iter(models), "")


def _split_counts(value: str) -> list[tuple[str, int]]:
    """Return the models and counts of a text such as `a100:2,v100`."""
    counts = []
    for each in value.split(","):
        model, _, count = each.rpartition(":")
        if count and not is_whole(count):
            # A text behind the colon that is no count belongs to the model: `gpu:a100` is one A100.
            model, count = each, "1"
        counts.append((model, int(count or 1)))
    return counts


def _memory(options: Mapping[str, str], cpus: int, cards: int, draft: Draft) -> str | None:
    """Return the memory per node in the form of a job file; None if none is requested."""
    for name, times in (("mem", 1), ("mem-per-cpu", cpus), ("mem-per-gpu", max(1, cards))):
        match = _MEMORY.fullmatch(options.get(name, ""))
        if match is None:
            continue
        mib = upwards(float(match["number"]) * _MIB_OF[match["unit"].upper()])
        if mib:
            if name in MEMORY_SHARES:
                draft.env(MEMORY_SHARES[name], str(mib))
            return f"{mib * times}M"
        # sbatch(1): a memory of 0 is all memory of the node.
        if "exclusive" not in options:
            draft.lacks(f"--{name}=0", "all memory of a node has no counterpart here; write --exclusive")
    return None
