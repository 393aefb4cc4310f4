#!/usr/bin/env python3
"""Runs a command as tasks in the containers of a job of the mode `slurm`, as `srun` does in a batch script.

    srun [-n TASKS] [-N NODES] [--ntasks-per-node=TASKS] [OTHER OPTIONS] COMMAND...

A task has the variables of the script and its own SLURM_PROCID, SLURM_LOCALID, SLURM_NODEID; the exit code is the
largest of all tasks'. Other options say what the job has already, and mean nothing here. Copied into the job's
containers: standard library only, Python 3.8. Source: srun(1).
"""

from __future__ import annotations

import math
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

AGENT = "/run/cockpit-launch/agent"
FAILED = 1
SHORT = {"n": "ntasks", "N": "nodes"}
FLAGS = {
    *("exclusive", "exact", "label", "unbuffered", "overlap", "overcommit", "oversubscribe", "contiguous", "no-kill"),
    *(
        "quiet",
        "verbose",
        "kill-on-bad-exit",
        "spread-job",
        "use-min-nodes",
        "immediate",
        "preserve-env",
        "disable-status",
    ),
    *("l", "u", "O", "s", "k", "Q", "v", "K", "X", "E", "I"),
}
UNABLE = {"multi-prog", "pty", "no-allocate", "Z"}
OF_EACH_REPLICA = (
    "COCKPIT_",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "HOSTNAME",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
)


class Unusable(Exception):
    """What srun was asked for cannot be had here."""


def parsed(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Options by their long names, and the command."""
    words, options = list(words), {}
    while words and words[0].startswith("-") and words[0] != "-":
        word = words.pop(0)
        if word == "--":
            break
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("--"):
            name, value = word[1], word[2:]
            name, equals = SHORT.get(name, name), value
        if name in UNABLE:
            raise Unusable(f"{word} is not possible here")
        if not equals and name not in FLAGS:
            value = words.pop(0) if words else ""
        options[name] = value
    if not words:
        raise Unusable("there is no command")
    return options, words


def shares(options: dict[str, str], env: dict[str, str]) -> list[int]:
    """How many tasks each of the nodes that take part has, in their order."""
    there = len(env["SLURM_JOB_NODELIST"].split(","))
    nodes = min(there, number(options, "nodes", there))
    counted = options.keys() & {"ntasks", "ntasks-per-node"}
    per_node = number(options, "ntasks-per-node", 0 if counted else number(env, "SLURM_NTASKS_PER_NODE", 0))
    asked = number(env, "SLURM_NTASKS", 0) if not counted else 0
    tasks = number(options, "ntasks", asked or per_node * nodes or nodes)
    nodes = min(nodes, tasks)
    if per_node:
        nodes = min(nodes, math.ceil(tasks / per_node))
    return [tasks // nodes + (node < tasks % nodes) for node in range(nodes)]


def number(given: dict[str, str], name: str, otherwise: int) -> int:
    value = given.get(name)
    if value is None:
        return otherwise
    if not value.isdigit() or not int(value):
        raise Unusable(f"{name} {value!r} is no count")
    return int(value)


def commands(words: list[str], each: list[int], env: dict[str, str]) -> list[tuple[str, str]]:
    """Of every task its host, and the text for the shell there."""
    hosts = env["SLURM_JOB_NODELIST"].split(",")
    common = {name: value for name, value in env.items() if not name.startswith(OF_EACH_REPLICA)}
    found: list[tuple[str, str]] = []
    for node, count in enumerate(each):
        for local in range(count):
            own = {"SLURM_PROCID": len(found), "SLURM_LOCALID": local, "SLURM_NODEID": node, "SLURM_NTASKS": sum(each)}
            variables = [f"{name}={value}" for name, value in {**common, **own}.items()]
            text = shlex.join(["env", *variables, *words])
            found.append((hosts[node], f"cd {shlex.quote(str(Path.cwd()))} 2>/dev/null; exec {text}"))
    return found


def main(words: list[str]) -> int:
    env = dict(os.environ)
    try:
        options, command = parsed(words)
        tasks = commands(command, shares(options, env), env)
    except (Unusable, KeyError) as error:
        sys.stderr.write(f"srun: {error}\n")
        return FAILED
    started = [
        subprocess.Popen([AGENT, host, text], stdin=None if not rank else subprocess.DEVNULL)
        for rank, (host, text) in enumerate(tasks)
    ]

    def end(number: int, _frame: object) -> None:
        for each in started:
            each.send_signal(number)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    codes = [each.wait() for each in started]
    return max(code if code >= 0 else 128 - code for code in codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
