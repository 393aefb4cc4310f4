"""Writes a job file of each kind to start from, in which every field has a comment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Final, NamedTuple

from cockpit.formats.job.fields import JOB
from cockpit.formats.tables import Field

WIDTH: Final = 100

_EXAMPLES: Final[Mapping[str, str]] = {
    "name": "my-job",
    "kind": "interactive",
    "command": "python3 /workspace/algorithm/train.py",
    "tasks": "[{command: python3 /workspace/algorithm/train.py, algorithm: ./algo}]",
    "output": "./out",
    "algorithm": "{path: ./algo}",
    "datasets": "[{path: ./data, read_only: true}]",
    "models": "[{name: bert, source: favorite, version: v2}]",
    "volumes": "[{path: ./data, name: data}]",
    "mode": "pytorch",
    "parameter_servers": "2",
    "worker_pools": "[{replicas: 1, spec: {cpus: 8}}, {replicas: 2, spec: {cpus: 8}}]",
    "nodes": "1",
    "specs": "[{cpus: 1, memory: 1G, cards: 0}]",
    "node_names": "[n01]",
    "pool": "a100",
    "driver_version": '"535.104"',
    "node_selector": "{disk: ssd}",
    "tolerations": "[spot, gpu=yes]",
    "exclusive": "true",
    "terminal": "true",
    "debug_hold": "{cards: keep, window: 8h}",
    "time_limit": "1h",
    "grace_period": "1m",
    "hold": "true",
    "home": "rw",
    "image": "dir:./root",
    "staging": "true",
    "env": "{OMP_NUM_THREADS: 4}",
    "labels": "{team: nlp}",
    "project": "vision",
    "access": "ro",
    "account": "lab",
    "partitions": "[short, long]",
    "qos": "high",
    "priority": "urgent",
    "nice": "100",
    "begin_at": "now+2h",
    "deadline": "now+2d",
    "dependencies": "[afterok:4711]",
    "array": "0-9%2",
    "sweep": "{parameters: {lr: [0.1, 0.01], layers: [2, 4]}, parallel: 2}",
    "reservation": "workshop",
    "suspension": "{scheduling: true}",
    "divide_over_clusters": "true",
    "failover": "{toleration_seconds: 60}",
    "elastic": "{workers: 1, min_workers: 1, max_workers: 4}",
    "restart": "{max_restarts: 3}",
    "resume": "{max_resumes: 3, grace_period: 5m, performance: {threshold: 0.9}}",
    "hooks": "{before_start: nvidia-smi, after_end: cp -r /tmp/traces /workspace/outputs}",
    "script": '{text: "#!/bin/bash\\nsrun hostname\\n", work_dir: ./algo}',
}
"""Example value of each field, as YAML in one line."""
_USUAL: Final = ("name", "algorithm", "output", "command", "nodes", "specs", "time_limit", "terminal")


class TemplateKind(NamedTuple):
    """The kinds of job files to start from."""

    about: str
    usual: tuple[str, ...] = _USUAL
    """Fields that are set; all others are commented out with `#`."""
    instead: Mapping[str, str] = {}
    """Other example values by field; those of several lines are written below the field's name."""


_TASKS: Final = """
  - {command: python3 /workspace/algorithm/train.py --lr 0.1, algorithm: ./algo}
  - {command: python3 /workspace/algorithm/train.py --lr 0.01, algorithm: ./algo}"""

REGULAR: Final = "regular"
KINDS: Final[Mapping[str, TemplateKind]] = {
    REGULAR: TemplateKind("one command on one node"),
    "cards": TemplateKind(
        "one command on several nodes with cards",
        usual=("name", "algorithm", "output", "command", "mode", *_USUAL[4:]),
        instead={
            "nodes": "2",
            "elastic": "{workers: 2, max_workers: 8}",
            "specs": "[{cpus: 8, memory: 64G, cards: 8, card_models: [A100]}]",
            "time_limit": "12h",
        },
    ),
    "slice": TemplateKind("one command on a part of a card", instead={"specs": "[{cpus: 2, memory: 8G, cards: 0.25}]"}),
    "array": TemplateKind(
        "the same command for many tasks",
        usual=(*_USUAL, "array"),
        instead={"command": "bash -c 'python3 /workspace/algorithm/sweep.py --seed $SLURM_ARRAY_TASK_ID'"},
    ),
    "batch": TemplateKind(
        "several tasks, each with a command, an algorithm and an output folder of its own",
        usual=("name", "kind", "tasks", "output", "nodes", "specs", "time_limit", "terminal"),
        instead={"kind": "batch", "tasks": _TASKS},
    ),
    "interactive": TemplateKind(
        "a session to enter: a shell, or the notebook that its command starts",
        usual=("name", "kind", "algorithm", "output", "specs", "time_limit"),
        instead={"kind": "interactive", "command": "jupyter lab --no-browser --ip 127.0.0.1", "time_limit": "8h"},
    ),
}


def template(kind: str, folder: str) -> str:
    """Return YAML that `read_jobs` accepts unchanged. `folder`: folder of relative paths. KeyError: no such kind."""
    chosen = KINDS[kind]
    fields = {field.name: field for field in JOB.fields if not field.alias}
    rest = [field for name, field in fields.items() if name not in chosen.usual]
    values = {**_EXAMPLES, **chosen.instead}
    lines = [f"# {chosen.about.capitalize()}. Relative paths begin in {folder}", ""]
    for name in chosen.usual:
        # Values of several lines begin with a line break, behind which no blank may be left.
        lines += [*_about(fields[name]), f"{name}: {values[name]}".replace(": \n", ":\n")]
    lines += ["", "# Whatever else there is. Take the # away from what is wanted."]
    for field in rest:
        lines += ["", *_about(field), f"#{field.name}: {values[field.name]}"]
    return "\n".join(lines) + "\n"


def _about(field: Field) -> Iterator[str]:
    return (f"# {line}" for line in wrap(field.about, WIDTH))
