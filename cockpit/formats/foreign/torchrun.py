"""`torchrun` on several nodes: the training operator tells it of them by PET_* variables, cockpit by its options."""

from __future__ import annotations

from typing import Final

from cockpit.launch.command import words_of

_OPTIONS: Final = (
    "--nnodes=${WORLD_SIZE} --nproc_per_node=${SLOTS} --node_rank=${RANK} --master_addr=${MASTER_ADDR} "
    "--master_port=${MASTER_PORT} "
)
_TOLD: Final = ("--nnodes", "--standalone", "--rdzv", "--node_rank", "--node-rank", "--master")


def with_nodes(command: str) -> str:
    """The command with options for its nodes, where it is a `torchrun` without any."""
    program, *arguments = words_of(command) or [""]
    told = any(word.startswith(_TOLD) for word in arguments)
    if program.rpartition("/")[2] != "torchrun" or told or not arguments:
        return command
    return f"{program} {_OPTIONS}{' '.join(arguments)}"


def without_nodes(command: str) -> str:
    """What `with_nodes` was given."""
    return command.replace(_OPTIONS, "", 1)
