"""A Python command under PyTorch's launcher: which part of the command is the interpreter's, and which the program's.

Sources: the platform's "PyTorch 模式"; `python --help`; the options of `torch.distributed.launch`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cockpit.launch.command import words_of

LAUNCHER: Final = "torch.distributed.launch"
_INTERPRETERS: Final = frozenset({"python", "python3"})
_WITH_VALUE: Final = frozenset("WX")
"""Letters of the interpreter's options that take a value, glued or as the next word."""
_LONG_WITH_VALUE: Final = "--check-hash-based-pycs"
_NO_PROGRAM: Final = frozenset(
    {"-", "h", "V", "?", "--help", "--version", "--help-all", "--help-env", "--help-xoptions"}
)
"""Options that only print something, and the program on the standard input."""
_LAUNCHER_MODULES: Final = (
    *("torch.distributed.launch", "torch.distributed.run", "torch.distributed.launcher", "torch.distributed.elastic"),
    *("accelerate", "deepspeed", "horovod.runner", "colossalai", "torch_xla.distributed", "lightning.fabric"),
    *("lightning_fabric", "intel_extension_for_pytorch", "oneccl_bindings_for_pytorch", "torchx", "composer.cli"),
)
"""Modules, with all below them, that start the processes of a training themselves."""
_LAUNCHER_PROGRAMS: Final = frozenset(
    {"torchrun", "accelerate", "deepspeed", "colossalai", "horovodrun", "mpirun", "mpiexec", "composer", "fabric"}
)
_LAUNCHER_FILES: Final = ("torch/distributed/launch.py", "torch/distributed/run.py")
_NAMED_ANYWHERE: Final = frozenset({LAUNCHER, "torch.distributed.run"})


class _PythonCommand(NamedTuple):
    """A call of the interpreter, in words as they are written."""

    interpreter: str
    options: list[str]
    """The interpreter's own, before the program."""
    kind: str
    """`m`: a module, `c`: code, empty: a file."""
    program: str
    arguments: list[str]


def torch_command(command: str, *, slots: str, nodes: str, rank: str, master: str, port: str) -> str:
    """Return the command under `torch.distributed.launch`, with the interpreter's options in their place. A command
    that is no Python program, or starts its processes itself, is not changed."""
    python = _python_command(words_of(command))
    # A launcher under another one would start each process several times.
    if python is None or LAUNCHER in command or _is_launcher(python):
        return command
    launched = [python.interpreter, *python.options, "-m", LAUNCHER]
    launched += [f"--nproc_per_node={slots}", f"--nnodes={nodes}", f"--node_rank={rank}"]
    launched += [f"--master_addr={master}", f"--master_port={port}"]
    return " ".join([*launched, *_program(python), *python.arguments])


def _program(python: _PythonCommand) -> list[str]:
    if python.kind == "m":
        return ["--module", python.program]
    if python.kind == "c":  # the launcher starts files and modules alone; any other program without an interpreter
        return ["--use_env", "--no_python", python.interpreter, *python.options, "-c", python.program]
    return [python.program]


def _is_launcher(python: _PythonCommand) -> bool:
    program = python.program.strip("'\"")
    if python.kind == "m" and any(program == each or program.startswith(f"{each}.") for each in _LAUNCHER_MODULES):
        return True
    is_file = not python.kind and (
        program.rpartition("/")[2] in _LAUNCHER_PROGRAMS or program.endswith(_LAUNCHER_FILES)
    )
    return is_file or not _NAMED_ANYWHERE.isdisjoint(python.arguments)


def _python_command(words: list[str]) -> _PythonCommand | None:
    """Return the program and its arguments of a Python command; None: it is none, or has no program."""
    if not words or words[0] not in _INTERPRETERS:
        return None
    at = 1
    while at < len(words):
        word = words[at]
        if word == "--":
            return _with_program(words[:at], "", words[at + 1 :])
        if not word.startswith("-"):
            return _with_program(words[:at], "", words[at:])
        letter, before, glued = _deciding_letter(word)
        if letter in {"m", "c"}:
            # `python -um train`: the letters before the deciding one are options of the interpreter.
            options = [*words[:at], *([f"-{before}"] if before else [])]
            return _with_program(options, letter, [*([glued] if glued else []), *words[at + 1 :]])
        if letter in _NO_PROGRAM or word in _NO_PROGRAM:
            return None
        # An option whose value is the next word (`-W ignore`) takes two, otherwise the value would pass for the
        # program.
        at += 2 if word == _LONG_WITH_VALUE or (letter in _WITH_VALUE and not glued) else 1
    return None


def _with_program(call: list[str], kind: str, rest: list[str]) -> _PythonCommand | None:
    """Return the parsed command; None without a program.

    `call`: the interpreter with its options; `rest`: the program with its arguments.
    """
    return _PythonCommand(call[0], call[1:], kind, rest[0], rest[1:]) if rest else None


def _deciding_letter(word: str) -> tuple[str, str, str]:
    """Return the first letter behind one dash that takes the rest of the word or ends the options, the letters before
    it, and the rest of the word; nothing for any other word."""
    for at, letter in enumerate(word):
        if word.startswith("--"):
            break
        # `at`: not the dash itself, which `_NO_PROGRAM` has as a word.
        if letter in {*_WITH_VALUE, *_NO_PROGRAM, "m", "c"} and at:
            return letter, word[1:at], word[at + 1 :]
    return "", "", ""
