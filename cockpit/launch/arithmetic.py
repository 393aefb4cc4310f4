"""The `$((…))` of a command: whole numbers, names, + - * / % and parentheses, with C's division and 64 bits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_TOKEN = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+|[0-9]+)(?![A-Za-z0-9_])"
    r"|\$?(?P<bare>[A-Za-z_]\w*)|\$\{(?P<braced>[A-Za-z_]\w*)\}|(?P<operator>[-+*/%()]))",
    re.ASCII,
)
_VALUE = re.compile(r"\s*([-+]?)(0[xX][0-9a-fA-F]+|[0-9]+)\s*", re.ASCII)
_MOST_NESTING = 40
_HIGHEST = (1 << 63) - 1
_MOST_DIGITS = 64


class ExpressionError(ValueError):
    """The expression cannot be read or computed; the text is a clause for users."""


def check(text: str) -> None:
    """Raise `ExpressionError` where the text between `$((` and `))` is no expression, whatever its names hold."""
    # Every name counts as 1 and every quotient is 1, so that neither an unset name nor a zero divisor is an error here.
    _Reader(text, variable=lambda _name: 1, quotient=lambda _left, _right: 1).value()


def names(text: str) -> list[str]:
    """Return the names in it, in their order. Raises `ExpressionError` where it is no expression."""
    return [token for token in _tokens(text) if token[:1].isidentifier()]


def evaluate(text: str, env: Mapping[str, str]) -> int:
    """Return the expression's value; an unset or empty name counts as 0. Raises `ExpressionError`, also for a name that
    holds no whole number, a division by zero and a result beyond 64 bits."""
    return _Reader(text, variable=lambda name: _variable(name, env), quotient=_quotient).value()


class _Reader:
    """Recursive descent that computes as it reads: one method per level of binding, and nothing kept but the value."""

    def __init__(self, text: str, variable: Callable[[str], int], quotient: Callable[[int, int], int]) -> None:
        self._tokens = _tokens(text)
        self._position = 0
        self._nesting = 0
        self._variable = variable
        self._quotient = quotient

    def value(self) -> int:
        value = self._sum()
        if self._peek():
            raise ExpressionError(f'has "{self._peek()}" where an operator was expected')
        return value

    def _peek(self) -> str:
        """Return the next token; empty at the end."""
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._position += 1
        return token

    def _sum(self) -> int:
        value = self._parse_product()
        while self._peek() in {"+", "-"}:
            sign = 1 if self._next() == "+" else -1
            value = _check_bounds(value + sign * self._parse_product())
        return value

    def _parse_product(self) -> int:
        """Parse and compute a product, in the order of its operators."""
        value = self._parse_signed()
        while self._peek() in {"*", "/", "%"}:
            operator, right = self._next(), self._parse_signed()
            if operator == "*":
                value = _check_bounds(value * right)
            else:
                quotient = self._quotient(value, right)
                # The remainder follows from the quotient, so it has the sign of the dividend, as in C (Python takes the
                # divisor's).
                value = quotient if operator == "/" else value - quotient * right
        return value

    def _parse_signed(self) -> int:
        negative = False
        while self._peek() in {"+", "-"}:
            negative ^= self._next() == "-"
        value = self._parse_operand()
        return -value if negative else value

    def _parse_operand(self) -> int:
        """Parse a number, a variable or a group in parentheses."""
        token = self._next()
        if token.startswith("("):
            return self._parse_group()
        if token[:1].isdigit():
            return _number(token)
        if token[:1].isidentifier():
            return self._variable(token)
        raise ExpressionError(f'has "{token}" where a number was expected' if token else "ends too early")

    def _parse_group(self) -> int:
        """Parse what is in parentheses."""
        self._nesting += 1
        # Each level takes several Python calls, so that a forged command could exhaust the stack.
        if self._nesting > _MOST_NESTING:
            raise ExpressionError(f"nests deeper than {_MOST_NESTING}")
        value = self._sum()
        if self._next() != ")":
            raise ExpressionError('lacks a ")"')
        self._nesting -= 1
        return value


def _tokens(text: str) -> list[str]:
    """Split an expression into tokens. Raises `ExpressionError`."""
    tokens = []
    position, text = 0, text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise ExpressionError("knows whole numbers, names, + - * / % and parentheses only")
        tokens.append(match[match.lastgroup])
        position = match.end()
    return tokens


def _number(digits: str) -> int:
    """Return the number that the digits mean in C: 0x is hexadecimal, a leading 0 is octal."""
    # Before int(): Python needs quadratic time for long decimal numbers and refuses those beyond 4300 digits.
    if len(digits) > _MOST_DIGITS:
        raise ExpressionError("exceeds 64 bits")
    if digits[:2] in {"0x", "0X"}:
        return _check_bounds(int(digits, 16))
    if not digits.startswith("0"):
        return _check_bounds(int(digits))
    if not set(digits) <= set("01234567"):
        raise ExpressionError(f"takes {digits} for octal because of its leading 0, and octal has no 8 or 9")
    return _check_bounds(int(digits, 8))


def _variable(name: str, env: Mapping[str, str]) -> int:
    value = env.get(name, "")
    if not value.strip():
        return 0
    match = _VALUE.fullmatch(value)
    if match is None:
        raise ExpressionError(f"needs {name} to be a whole number, which it is not")
    return -_number(match[2]) if match[1] == "-" else _number(match[2])


def _quotient(left: int, right: int) -> int:
    """Return the quotient, rounded towards zero as in C."""
    if right == 0:
        raise ExpressionError("divides by zero")
    # Not int(left / right): a double has 53 bits, and the values have 64.
    size = abs(left) // abs(right)
    return _check_bounds(size if (left < 0) == (right < 0) else -size)


def _check_bounds(value: int) -> int:
    if not -_HIGHEST - 1 <= value <= _HIGHEST:
        raise ExpressionError("exceeds 64 bits")
    return value
