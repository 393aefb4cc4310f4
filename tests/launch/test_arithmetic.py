from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.launch.arithmetic import ExpressionError, check, evaluate, names

ENV = {"N": "4", "NEGATIVE": "-7", "HEX": "0x10", "SPACED": " 5 ", "EMPTY": "", "WORD": "four"}


@pytest.mark.req("LA-01")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1+2*3", 7),
        ("(1+2)*3", 9),
        ("N*2", 8),
        ("$N * ${N}", 16),
        ("-7/2", -3),
        ("-7%2", -1),
        ("7/-2", -3),
        ("7%-2", 1),
        ("NEGATIVE % 4", -3),
        ("- -5", 5),
        ("010 + HEX", 24),
        ("SPACED", 5),
        ("0" * 64, 0),
        ("0X1f", 31),
        ("0", 0),
        ("EMPTY + UNSET", 0),
        ("10 - 4 - 3", 3),
        ("9223372036854775807", 2**63 - 1),
        ("0-9223372036854775807-1", -(2**63)),
    ],
)
def test_arithmetic_is_evaluated_as_in_c(text: str, value: int) -> None:
    assert evaluate(text, ENV) == value


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("1/0", "divides by zero"),
        ("1%UNSET", "divides by zero"),
        ("WORD", "needs WORD to be a whole number"),
        ("9223372036854775807+1", "64 bits"),
        ("9" * 5000, "64 bits"),
        ("0" * 65, "64 bits"),
        ("9223372036854775808", "64 bits"),
        ("(0-9223372036854775807-1)/-1", "64 bits"),
        ("0-9223372036854775807-1-1", "64 bits"),
        ("4611686018427387904*2", "64 bits"),
        ("08", "octal"),
    ],
)
def test_an_invalid_computation_is_reported(text: str, part: str) -> None:
    with pytest.raises(ExpressionError, match=part):
        evaluate(text, ENV)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1+",
        "(1",
        "1)",
        "1 2",
        "a=1",
        "1<2",
        "a[0]",
        "1**2",
        "x++ +",
        "'1'",
        "1.5",
        "12ab",
        "$(id)",
        "(" * 5000 + "1",
    ],
)
def test_an_invalid_expression_is_refused_before_evaluation(text: str) -> None:
    with pytest.raises(ExpressionError):
        check(text)


def test_checking_needs_no_values() -> None:
    check("WORD / (UNSET - UNSET)")
    check("9223372036854775807 * UNSET * (WORD / WORD)")


def test_parentheses_nest_forty_deep_and_no_deeper_however_many_there_are() -> None:
    check("(" * 40 + "1" + ")" * 40)
    check(" + ".join(["(1)"] * 50))
    with pytest.raises(ExpressionError, match="nests deeper than 40"):
        check("(" * 41 + "1" + ")" * 41)


@pytest.mark.parametrize(
    ("text", "found"), [("A + $B * ${C} - 1 / 0x1f", ["A", "B", "C"]), ("N + N", ["N", "N"]), ("1 + 2", [])]
)
def test_the_names_of_an_expression_are_listed_in_their_order(text: str, found: list[str]) -> None:
    assert names(text) == found


def test_a_long_sum_does_not_overflow_the_stack() -> None:
    assert evaluate("+".join(["1"] * 20_000), {}) == 20_000
    assert evaluate("-" * 10_001 + "1", {}) == -1


NUMBERS = st.integers(0, 999).map(str)
EXPRESSIONS = st.recursive(
    NUMBERS | st.sampled_from(["N", "$N", "${M}"]),
    lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(" ".join) | inner.map("({})".format),
    max_leaves=8,
)


@pytest.mark.req("LA-01")
@settings(deadline=None)
@given(st.lists(EXPRESSIONS, min_size=40, max_size=40))
def test_a_real_shell_agrees(expressions: list[str]) -> None:
    env = {"N": "12", "M": "-5"}
    script = "\n".join(f'printf "%s\\n" "$(({expression}))"' for expression in expressions)
    answer = subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, check=True)
    assert [evaluate(expression, env) for expression in expressions] == [int(line) for line in answer.stdout.split()]
