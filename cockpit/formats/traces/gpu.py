"""Traces of clusters that share cards, as Alibaba publishes them (cluster-trace-gpu-v2023, "openb"): one CSV of pods,
one of nodes. Columns are found by their names; others than those below are not looked at.

    pods   name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec (models, `|` between; empty: any)
    nodes  sn, cpu_milli, memory_mib, gpu, model

CPUs are counted in thousandths on both sides, so that `NodeSpec.cpus` and `Node.cpus` of a trace are thousandths too.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from random import Random
from typing import TypeVar

from cockpit.errors import SpecErrors
from cockpit.formats.packed import unpack
from cockpit.model.ids import NodeName
from cockpit.model.node import Card, Node
from cockpit.model.spec import WHOLE_CARD, JobSpec, NodeSpec

POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec")
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")

_MOST_ERRORS = 20
_MOST_CARDS = 1024
"""The largest number of cards on one node."""
_MOST = 2**53
"""The largest plausible figure; no cluster has more of anything."""

Row = dict[str, str]
Read = TypeVar("Read")


def read_pods(source: str, data: bytes) -> list[JobSpec]:
    """Return the pods in the file's order, each as a job of one replica. Raises `SpecErrors` that name the lines."""
    return _read(source, data, POD_COLUMNS, _pod, "pod")


def read_nodes(source: str, data: bytes) -> list[Node]:
    """Return the nodes in the file's order. Raises `SpecErrors` that name the lines."""
    nodes = _read(source, data, NODE_COLUMNS, _node, "node")
    names = [node.name for node in nodes]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise SpecErrors([f"{source}: node {name} is there twice; give each its own sn." for name in twice])
    return nodes


def _read(source: str, data: bytes, columns: Sequence[str], made: Callable[[Row], Read], what: str) -> list[Read]:
    """Return what all rows hold. Raises `SpecErrors` that name the first wrong lines."""
    rows: list[Read] = []
    errors: list[str] = []
    for line, row in _rows(source, data, columns):
        try:
            rows.append(made(row))
        except ValueError as error:
            errors.append(f"{source}:{line}: {error}")
    if errors:
        # A file of another kind has an error in every line, too many to print.
        more = len(errors) - _MOST_ERRORS
        raise SpecErrors([*errors[:_MOST_ERRORS], f"{source}: … and {more} more"] if more > 0 else errors)
    if not rows:
        raise SpecErrors([f"{source}: no {what} in it; it needs a line for each after the line of column names."])
    return rows


def _rows(source: str, data: bytes, columns: Sequence[str]) -> Iterator[tuple[int, Row]]:
    """Yield (line, values by column)."""
    # utf-8-sig: published CSV files may begin with a byte order mark, which would be a part of the first column's name.
    lines = unpack(source, data).decode("utf-8-sig", "replace").splitlines()
    # restval: a line that is too short has empty values, which the columns' own checks report.
    reader = csv.DictReader(lines, restval="", strict=True)
    try:
        missing = [column for column in columns if column not in (reader.fieldnames or ())]
        if missing:
            message = f"{source}: no column {', '.join(missing)} in the first line, which names {', '.join(columns)}."
            raise SpecErrors([message])
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise SpecErrors([f"{source}:{reader.line_num + 1}: {error}; correct the quotes of the line."]) from error


def _pod(row: Row) -> JobSpec:
    """Return a pod as a job. Raises ValueError."""
    cards, milli = _whole(row, "num_gpu", _MOST_CARDS), _whole(row, "gpu_milli", WHOLE_CARD)
    if cards and not milli:
        msg = "gpu_milli is 0 beside a num_gpu; it has thousandths of a card, 1000 for all of it."
        raise ValueError(msg)
    if cards > 1 and milli != WHOLE_CARD:
        msg = f"{milli} thousandths of each of {cards} cards; a pod has a part of one card, or whole cards."
        raise ValueError(msg)
    # Sorted, so that requests that differ only in the order of the models share one object.
    models = tuple(sorted(filter(None, row["gpu_spec"].split("|"))))
    # gpu_milli is of each card: 1000 for whole ones, so that the product is right for both.
    spec = _node_spec(_whole(row, "cpu_milli"), _whole(row, "memory_mib"), cards * milli, models)
    return JobSpec(name=_text(row, "name"), command="", output="", specs=spec)


@cache
def _node_spec(cpus: int, memory_mib: int, card_milli: int, models: tuple[str, ...]) -> tuple[NodeSpec, ...]:
    """Return one shared object for equal requests, which makes comparisons fast."""
    return (NodeSpec(cpus=cpus, memory_mib=memory_mib, card_milli=card_milli, card_models=models),)


def _node(row: Row) -> Node:
    cards = tuple(Card(index=index, model=row["model"]) for index in range(_whole(row, "gpu", _MOST_CARDS)))
    name = NodeName(_text(row, "sn"))
    return Node(name=name, cpus=_whole(row, "cpu_milli"), memory_mib=_whole(row, "memory_mib"), cards=cards)


def _text(row: Row, column: str) -> str:
    if not row[column]:
        msg = f"{column} is empty."
        raise ValueError(msg)
    return row[column]


def _whole(row: Row, column: str, most: int = _MOST) -> int:
    text = row[column] or ""
    # The length first: int() refuses thousands of digits with an error of its own.
    if not (text.isascii() and text.isdigit() and len(text) < 17 and int(text) <= most):
        msg = f"{column} is {text[:40]!r}; it has a whole number from 0 to {most}."
        raise ValueError(msg)
    return int(text)


def arriving(pods: Sequence[JobSpec], target_milli: int, seed: int) -> list[JobSpec]:
    """Return the pods that come, in order; together they ask for at most `target_milli` thousandths of cards.

    At least one of them must ask for some.
    """
    chance = Random(seed)  # noqa: S311 - a sample, no secret
    arrivals = list(pods)
    chance.shuffle(arrivals)
    requested = sum(map(card_milli, arrivals))
    # Pods are left out, or drawn again, at random, so that the mixture of sizes stays that of the trace.
    while requested > target_milli:
        requested -= card_milli(arrivals.pop(chance.randrange(len(arrivals))))
    if len(arrivals) < len(pods):
        return arrivals
    # Ends with the first pod that does not fit: to look for a smaller one would favour small pods at the end.
    while requested + card_milli(drawn := chance.choice(pods)) <= target_milli:
        requested += card_milli(drawn)
        arrivals.append(drawn)
    return arrivals


def card_milli(pod: JobSpec) -> int:
    """Return the cards that a pod requests, in thousandths."""
    return pod.specs[0].card_milli * pod.nodes
