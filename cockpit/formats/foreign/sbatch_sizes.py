"""Reads the size of a node out of the options of sbatch: Slurm counts tasks, cockpit nodes. Source: sbatch(1)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from cockpit.formats.foreign.draft import Draft, remedy, upwards
from cockpit.model.text import is_whole, whole

_MEMORY: Final = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<unit>[KMGTkmgt]?)[Bb]?")
_MIB_OF: Final = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024 * 1024}
SIZES: Final = frozenset(
    {"nodes", "ntasks", "ntasks-per-node", "cpus-per-task", "mem", "mem-per-cpu", "mem-per-gpu"}
    | {"mincpus", "distribution", "gpus", "gpus-per-node", "gpus-per-task", "gres", "cpus-per-gpu"}
    | {"ntasks-per-gpu", "tres-per-node", "tres-per-task"}
)
_COUNTS: Final = frozenset({"ntasks", "ntasks-per-node", "ntasks-per-gpu", "cpus-per-task", "cpus-per-gpu", "mincpus"})
"""Options whose value is a whole number from 1 up."""
_EXCLUSIVE: Final = (("mem", "mem-per-cpu", "mem-per-gpu"), ("cpus-per-task", "cpus-per-gpu"))
_CARDS: Final = ("gpus", "gpus-per-node", "gpus-per-task")
"""Options that count cards, for the job, a node and a task."""
_TRES: Final = {
    "tres-per-node": {"gpu": "gres"},
    "tres-per-task": {"gpu": "gpus-per-task", "cpu": "cpus-per-task"},
}
"""The options that mean the same as a trackable resource (TRES), by its name."""
_NODES: Final = re.compile(r"(?P<least>[0-9]{1,9}[kKmM]?)(?:-(?P<most>[0-9]{1,9}[kKmM]?))?")
_NO_CARDS: Final = re.compile(r"[+-]?[0-9.]+|.*:.*", re.DOTALL)
"""A number that is no count of cards, or two models. A model may begin with digits (`2080ti`, `1g.10gb`)."""
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
    "ntasks-per-gpu": "SLURM_NTASKS_PER_GPU",
    "distribution": "SLURM_DISTRIBUTION",
}
"""Options that the script and its steps see as they were requested."""
MEMORY_SHARES: Final = {"mem-per-cpu": "SLURM_MEM_PER_CPU", "mem-per-gpu": "SLURM_MEM_PER_GPU"}


def _number(text: str) -> int | None:
    """Return a whole number as sbatch reads one: with blanks and a plus before it."""
    return whole(text.strip().removeprefix("+"))


def _whole(options: Mapping[str, str], name: str) -> int | None:
    return _number(options.get(name, "")) or None


def _refuse_wrong(options: Mapping[str, str], draft: Draft) -> None:
    """Refuse what sbatch refuses: a job of the usual size in place of the wanted one would be worse than none."""
    for name in sorted(_COUNTS & options.keys()):
        if not _number(options[name]):
            usual = f"write one from 1 up, such as --{name}=4"
            draft.refuse(f"--{name}={options[name]}", f"is no whole number; {remedy(options[name], usual)}")
    for names in _EXCLUSIVE:
        if len(given := [f"--{name}" for name in names if name in options]) > 1:
            draft.refuse(" and ".join(given), "exclude each other; remove one of them")


def take_size(options: Mapping[str, str], draft: Draft) -> None:
    """Read the number of nodes and the resources of each: Slurm counts tasks, cockpit nodes."""
    _refuse_wrong(options, draft)
    options = _with_tres(options, draft)
    layout = _layout(options, draft)
    if "nodes" in options or layout.nodes > 1:
        draft.values["nodes"] = layout.nodes
    for name, variable in _AS_REQUESTED.items():
        if name in options:
            draft.env(variable, options[name])
    each = _whole(options, "cpus-per-task")
    # None: the default of a job file, one CPU, is that of sbatch as well.
    cpus = layout.per_node * (each or 1) if layout.counts_tasks or each else None
    cpus = max(cpus or 0, _whole(options, "mincpus") or 0) or None
    if per_card := _whole(options, "cpus-per-gpu"):
        cpus = max(cpus or 0, per_card * layout.cards) or None
    draft.spec(cpus=cpus, memory=_memory(options, cpus or 1, layout.cards, draft), cards=layout.cards or None)
    draft.spec(card_models=[layout.model] if layout.model else None)
    counts = {"cpus-per-task": each, "ntasks": layout.tasks, "ntasks-per-node": layout.most_per_node}
    for name, variable in TASKS.items():
        if number := counts[name]:
            draft.env(variable, str(number))


class _Layout(NamedTuple):
    """How the tasks of a job lie on its nodes."""

    nodes: int
    tasks: int | None
    """Of the whole job; None: nothing says how many."""
    most_per_node: int | None
    """Tasks of a node as requested; None: nothing says how many."""
    per_node: int
    """Tasks of the fullest node, which decides, since all nodes of a job here are alike."""
    cards: int
    """Of a node."""
    model: str

    @property
    def counts_tasks(self) -> bool:
        return self.tasks is not None or self.most_per_node is not None


def _layout(options: Mapping[str, str], draft: Draft) -> _Layout:
    """Return the layout, with each number that is missing computed from the others as sbatch does.

    1. The tasks of the job, by its cards, where only these and the cards or tasks for each are given.
    2. The tasks of a node, likewise by the cards of a node.
    3. The nodes: as given; else as many as the cards of the job fill, or its tasks; no more than there are tasks.
    4. The tasks and cards of the fullest node.
    """
    cards_by_option = [_cards(options, name) for name in _CARDS]
    in_all, on_node, for_task = (count for count, _ in cards_by_option)
    model = next((model for _, model in cards_by_option if model), "")
    for_card = _whole(options, "ntasks-per-gpu")
    # 1
    tasks, per_node = _whole(options, "ntasks"), _whole(options, "ntasks-per-node")
    if in_all and for_card:
        tasks = in_all * for_card
    elif in_all and for_task and tasks is None:
        tasks = math.ceil(in_all / for_task)
    # 2
    if on_node and for_card and tasks is None:
        per_node = on_node * for_card
    elif on_node and for_task and per_node is None:
        per_node = max(1, on_node // for_task)
    # 3
    nodes = _nodes(options, draft)
    if nodes is None:
        by_cards = math.ceil(in_all / on_node) if in_all and on_node else 1
        nodes = max(by_cards, math.ceil(tasks / per_node) if tasks and per_node else 1)
    elif tasks and tasks < nodes:
        draft.lacks(
            f"--nodes={options['nodes']}",
            f"a node has at least one of the {tasks} tasks; --nodes={tasks} is taken, as by sbatch",
        )
        nodes = tasks
    # 4
    fullest = math.ceil(tasks / nodes) if tasks else per_node or 1
    cards = on_node or for_task * fullest or math.ceil(in_all / nodes)
    # Without cards, --ntasks-per-gpu asks for those that the tasks need.
    cards = cards or (math.ceil(fullest / for_card) if for_card and tasks else 0)
    return _Layout(nodes, tasks, per_node, fullest, cards, model)


def _nodes(options: Mapping[str, str], draft: Draft) -> int | None:
    """Return the least number of nodes that is asked for; None: nothing says how many."""
    wanted = options.get("nodes", "").strip()
    if not wanted:
        return None
    match = _NODES.fullmatch(wanted)
    least, most = (_node_count(match[name] or "0") if match else 0 for name in ("least", "most"))
    if match is None or (match["most"] and most < least):
        usual = "write one, such as --nodes=2, or a range, such as --nodes=2-4"
        draft.refuse(f"--nodes={wanted}", f"is no number of nodes; {remedy(wanted, usual)}")
    elif match["most"] and most > least:
        draft.lacks(f"--nodes={wanted}", "the smaller number is taken")
    return least or None


def _node_count(text: str) -> int:
    """Return a number of nodes; sbatch(1) permits `k` and `m` behind it."""
    return int(text.rstrip("kKmM")) * {"k": 1024, "m": 1024**2}.get(text[-1].lower(), 1)


def _with_tres(options: Mapping[str, str], draft: Draft) -> Mapping[str, str]:
    """Return the options with --tres-per-node and --tres-per-task as the options that mean the same."""
    found: dict[str, str] = {}
    for option, names in _TRES.items():
        for each in filter(None, options.get(option, "").split(",")):
            name, _, amount = re.sub("^gres[/:]", "", each.strip()).replace("=", ":").partition(":")
            if name in names and amount:
                found[names[name]] = amount if names[name] != "gres" else f"{name}:{amount}"
            else:
                draft.lacks(f"--{option}={each}")
    # What an option of its own says comes first.
    return {**found, **options}


def _cards(options: Mapping[str, str], name: str) -> tuple[int, str]:
    """Return the number of cards that one option asks for, and their model."""
    text = options.get(name, "")
    # --gres counts for each node, like --gpus-per-node, which comes first.
    if name == "gpus-per-node" and not text:
        wanted = [each for each in gres(options) if each.partition(":")[0] == "gpu"]
        name, text = "gres", ",".join(each.partition(":")[2] for each in wanted)
        if not wanted:
            return 0, ""
    elif not text:
        return 0, ""
    return _of_one_model(f"--{name}={options[name]}", _split_counts(f"--{name}={options[name]}", text))


def gres(options: Mapping[str, str]) -> list[str]:
    """Return each generic resource as `name[:type][:count]`, without a socket binding behind it."""
    plain = re.sub(r"\([^)]*\)", "", options.get("gres", "")).replace("=", ":")
    return [re.sub("^gres[:/]", "", each) for each in plain.split(",") if each not in {"", "none", "NONE"}]


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


def _split_counts(option: str, value: str) -> list[tuple[str, int]]:
    """Return the models and counts of a text such as `a100:2,v100`. Raises ValueError."""
    counts = []
    for each in value.split(","):
        model, _, count = each.rpartition(":")
        if count and not is_whole(count):
            # A text behind the colon that is no count belongs to the model: `gpu:a100` is one A100.
            model, count = each, "1"
        if _NO_CARDS.fullmatch(model):
            raise ValueError(f"{option} counts no cards; {remedy(value, 'write a number, or a model and one: a100:2')}")
        counts.append((model, int(count or 1)))
    return counts


def _memory(options: Mapping[str, str], cpus: int, cards: int, draft: Draft) -> str | None:
    """Return the memory per node in the form of a job file; None if none is requested."""
    for name, times in (("mem", 1), ("mem-per-cpu", cpus), ("mem-per-gpu", max(1, cards))):
        if name not in options:
            continue
        match = _MEMORY.fullmatch(options[name].strip())
        if match is None:
            usual = f"write a number with K, M, G or T, such as --{name}=64G"
            draft.refuse(f"--{name}={options[name]}", f"is no amount of memory; {remedy(options[name], usual)}")
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
