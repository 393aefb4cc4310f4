"""Amounts of trackable resources as Slurm writes them: `cpu=16,mem=64G,gres/gpu:a100=4`."""

from __future__ import annotations

import math
import re
from enum import Enum

from cockpit.model.cluster import Tres
from cockpit.model.quantity import parse_memory
from cockpit.model.rules.text import LARGEST_AMOUNT, tres_name_error
from cockpit.model.text import visible

_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?(e-?[0-9]{1,2})?")
_PER_UNIT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)([kmgtp])", re.IGNORECASE)
_MIB = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024**2, "p": 1024**3}


class NumberMeaning(Enum):
    """The meaning of a number beside a resource."""

    AMOUNT = "amount"
    """An amount; memory may have a unit, as in GrpTRES."""
    WEIGHT = "weight"
    """A number, as in PriorityWeightTRES."""
    PRICE = "price"
    """The price of one unit; `mem=0.25G` is a quarter for each GiB, as in TRESBillingWeights."""


def tres_name(text: str) -> str:
    """Return the name of a resource in lower case, since Slurm ignores the case."""
    return text.strip().lower()


def tres_number(name: str, value: object, meaning: NumberMeaning) -> float | str:
    """Return the number of one resource; a str is the error. -1 removes a limit."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return "is no number"
    number = float(value) if isinstance(value, int | float) else _of_text(name, value.strip(), meaning)
    if number is None:
        return f'"{visible(str(value))}" is no number'
    if not math.isfinite(number) or not (0 <= number <= LARGEST_AMOUNT or number == -1):
        return f"{visible(str(value))} is not between 0 and {LARGEST_AMOUNT:g}"
    return number


def _of_text(name: str, text: str, meaning: NumberMeaning) -> float | None:
    """Return the number of a text with its unit; None if it is none."""
    if _NUMBER.fullmatch(text):
        return float(text)
    # Only memory has units in Slurm's lists of TRES.
    if name != "mem":
        return None
    if meaning is NumberMeaning.AMOUNT:
        mib = parse_memory(text)
        return float(mib) if isinstance(mib, int) else None
    # A price per GiB is divided by 1024 to be one per MiB, the unit in which memory is counted.
    match = _PER_UNIT.fullmatch(text)
    return float(match[1]) / _MIB[match[2].lower()] if match and meaning is NumberMeaning.PRICE else None


def parse_tres(text: str, meaning: NumberMeaning = NumberMeaning.AMOUNT) -> Tres | str:
    """Return the amounts; a str is the error. Each resource may be there once."""
    tres: Tres = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, equals, value = part.partition("=")
        # Before the names are compared: `CPU` and `cpu` are the same resource.
        name = tres_name(name)
        if not equals:
            return f'"{visible(part)}" is no amount; write {text_of_example(meaning)}'
        if error := tres_name_error(name):
            return error
        if name in tres:
            return f"{name} is there twice; keep one"
        number = tres_number(name, value, meaning)
        if isinstance(number, str):
            return f"{name}: {number}"
        tres[name] = number
    return tres


def text_of_example(meaning: NumberMeaning) -> str:
    """Return an example of how such amounts are written."""
    return "cpu=16,mem=64G,gres/gpu=4" if meaning is NumberMeaning.AMOUNT else "cpu=100,mem=150"


def plain_number(number: float) -> int | float:
    """Return a whole number without a point."""
    return int(number) if number == int(number) else number


def tres_text(tres: Tres) -> str:
    """Return a text that `parse_tres` reads back as equal."""
    return ",".join(f"{name}={plain_number(number)!r}" for name, number in tres.items())


def amounts_text(tres: Tres) -> str:
    """Return amounts as text, memory with its unit: `mem=64G`."""
    return ",".join(f"{name}={_amount(name, number)}" for name, number in tres.items())


def _amount(name: str, number: float) -> str:
    # -1 is no amount, but removes a limit.
    if name != "mem" or number != int(number) or number < 0:
        return f"{plain_number(number)!r}"
    return f"{int(number) // 1024}G" if number and number % 1024 == 0 else f"{int(number)}M"
