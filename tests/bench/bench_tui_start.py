"""From the start of the process to the first row on the screen of a real pseudo terminal."""

from __future__ import annotations

import os
import sys
from statistics import median

import pytest

from cockpit.tui.widgets.table import CURSOR_SIGN
from tests.bench.bench_headless import INSTALLED, submit_waiting
from tests.bench.figures import Figures
from tests.doubles.terminal import Terminal
from tests.e2e.cockpit_user import ROOT, a_new_user

ROUNDS = 11


def first_row(env: dict[str, str], *words: str) -> float:
    """Milliseconds."""
    with Terminal([sys.executable, "-c", INSTALLED, *words], env) as terminal:
        return (terminal.paint_after(0, CURSOR_SIGN) - terminal.started_at) * 1000


@pytest.mark.real
def test_opening_on_the_own_engine(figure: Figures):
    with a_new_user() as user:
        submit_waiting(user, 100)
        figure.spread("PF-11", "first paint", [first_row(user.env) for _ in range(ROUNDS + 1)][1:])


def test_opening_the_demo(figure: Figures):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    taken = [first_row(env, "demo") for _ in range(ROUNDS + 1)][1:]
    figure("PF-11", "cockpit demo, first row visible, median", median(taken))
