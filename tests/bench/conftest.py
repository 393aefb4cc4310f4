from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.figures import BARS, Figures, read_bars

FIGURES = pytest.StashKey[Figures]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--figures", type=Path, metavar="FILE", help="write what the benchmarks measured as JSON")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FIGURES] = Figures(read_bars(BARS.read_text()))


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Figures:
    """`figure(id, name, value)` puts a value beside its bar."""
    return request.config.stash[FIGURES]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    figures = config.stash[FIGURES]
    file = config.getoption("--figures", default=None)
    if not file:
        return
    terminalreporter.section("figures and their bars")
    for line in figures.lines():
        terminalreporter.line(line)
    file.write_bytes(figures.as_json())
