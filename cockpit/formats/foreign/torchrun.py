"""Adds the options about nodes and processes to `torchrun`, and removes them again.

The training operator sets PET_* variables instead, from which torchrun takes the same values. The workers of an elastic
job change, which options cannot follow: there `cockpit.elastic_torchrun` takes the place of torchrun.
"""

from __future__ import annotations

import re
from typing import Final

from cockpit.launch.command import words_of

SLOTS: Final = "${SLOTS}"
"""The value for as many processes as the node has cards, or one."""
_NODES: Final = "--nnodes=${WORLD_SIZE} "
_RANK: Final = "--node_rank=${RANK} --master_addr=${MASTER_ADDR} --master_port=${MASTER_PORT} "
# Beginnings of options: one of them is enough to show that the command finds its nodes by itself.
_NODE_OPTIONS: Final = ("--nnodes", "--standalone", "--rdzv", "--node_rank", "--node-rank", "--master")
_PROCESS_OPTIONS: Final = ("--nproc_per_node", "--nproc-per-node")
_PYTHON: Final = re.compile(r"(?:.*/)?python[0-9.]*")
_MODULES: Final = frozenset({"torch.distributed.run", "torch.distributed.launch"})
_ELASTIC: Final = "cockpit.elastic_torchrun"
_BACKEND: Final = re.compile(r"--rdzv[_-]backend=(?:c10d)")
"""The rendezvous that an elastic job has anyway."""
_NAMED: Final = re.compile(r"\btorchrun\b|\btorch\.distributed\.(?:run|launch)\b")


def with_nodes(command: str, *, nodes: int, processes: str = SLOTS) -> str:
    """Return a launcher of PyTorch with the options for nodes and processes that it does not have yet.

    Any other command is returned as it is.
    """
    launcher, arguments = _split_launcher(command)
    if not launcher or not arguments:
        return command
    added = _options(
        nodes=nodes > 1 and not _has_any(arguments, _NODE_OPTIONS),
        processes="" if _has_any(arguments, _PROCESS_OPTIONS) else processes,
    )
    return f"{' '.join(launcher)} {added}{' '.join(arguments)}" if added else command


def without_nodes(command: str) -> str:
    """Return the command without the options that `with_nodes` adds."""
    launcher, arguments = _split_launcher(command)
    rest = " ".join(arguments)
    # The longest first: the others are parts of it.
    for options in (_options(nodes=True, processes=SLOTS), _options(nodes=True), _options(processes=SLOTS)):
        if launcher and rest.startswith(options):
            return f"{' '.join(launcher)} {rest.removeprefix(options)}"
    return command


def elastic_launcher(command: str) -> str:
    """Return the command with `cockpit.elastic_torchrun` in place of a launcher of PyTorch that finds its nodes by
    variables alone. Any other command is returned as it is."""
    launcher, arguments = _split_launcher(command)
    left = [word for word in arguments if not _BACKEND.fullmatch(word)]
    if not left or _has_any(left, _NODE_OPTIONS):
        return command
    python = launcher[:-2] or ["python3"]
    return " ".join([*python, "-m", _ELASTIC, *left])


def plain_launcher(command: str) -> str:
    """Return the command with PyTorch's own launcher in place of `cockpit.elastic_torchrun`."""
    return command.replace(f" -m {_ELASTIC} ", " -m torch.distributed.run ", 1)


def lacks_process_count(command: str) -> bool:
    """Return whether a launcher of PyTorch in the command gets its number of processes through a variable only, as in
    the text of a shell."""
    return _NAMED.search(command) is not None and not any(option in command for option in _PROCESS_OPTIONS)


def _options(*, nodes: bool = False, processes: str = "") -> str:
    each = f"--nproc_per_node={processes} " if processes else ""
    return f"{_NODES}{each}{_RANK}" if nodes else each


def _has_any(arguments: list[str], options: tuple[str, ...]) -> bool:
    return any(word.startswith(options) for word in arguments)


def _split_launcher(command: str) -> tuple[list[str], list[str]]:
    """Return the words of the launcher and those behind it; both empty where the command is no launcher."""
    words = words_of(command)
    if not words:
        return [], []
    if words[0].rpartition("/")[2] == "torchrun":
        return words[:1], words[1:]
    if _PYTHON.fullmatch(words[0]) and "-m" in words:
        at = words.index("-m") + 2
        # Only options before `-m`, such as -u: a script before it would be the program.
        if words[at - 1 : at] and words[at - 1] in _MODULES and all(word.startswith("-") for word in words[1 : at - 1]):
            return words[:at], words[at:]
    return [], []
