"""Reads the present prices of nodes: JSON such as `{"n07": 0.32, "*": 0.4}`, or a line `n07 0.32` for each node.

`*` is the price of every spot node that has none of its own. The unit is that of the jobs' `max_price`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cockpit.model.rules.bounds import PRICE_MILLI
from cockpit.model.text import visible


class NotPrices(ValueError):
    """A text that is no list of prices; it says what is wrong."""


def read_prices(text: str) -> dict[str, int]:
    """Return the price of each name in thousandths. Raises `NotPrices`."""
    pairs = _of_json(text) if text.lstrip().startswith("{") else _of_lines(text)
    return {name: _milli(name, price) for name, price in pairs.items()}


def _of_json(text: str) -> Mapping[str, float]:
    try:
        return msgspec.json.decode(text, type=dict[str, float])
    except (msgspec.DecodeError, ValueError):
        raise NotPrices('it is no JSON such as {"n07": 0.32}') from None


def _of_lines(text: str) -> Mapping[str, float]:
    prices: dict[str, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            name, price = words
            prices[name] = float(price)
        except ValueError:
            raise NotPrices(f"line {number} is not a node and a price, such as `n07 0.32`") from None
    return prices


def _milli(name: str, price: float) -> int:
    # also false for infinity and for what is no number
    if not 0 <= price <= PRICE_MILLI.high / 1000:
        raise NotPrices(f"the price of {visible(name)} is not between 0 and {PRICE_MILLI.high // 1000}")
    return round(price * 1000)
