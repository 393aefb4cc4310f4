"""Under `CI=true` a skipped test fails the run, unless tests/expected-skips.txt names it and says why.

A line of that file is `node id: reason`, where the node id may be a folder, a file or a test without its parameters.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def read_expected(file: Path) -> dict[str, str]:
    """Reasons by node id; empty where there is no file. Raises UsageError for a line without a reason."""
    expected = {}
    lines = file.read_text().splitlines() if file.exists() else []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        node, _, reason = (part.strip() for part in line.partition(": "))
        if not reason:
            raise pytest.UsageError(f"{file}:{number}: write `node id: reason`, not {line!r}")
        expected[node] = reason
    return expected


def is_expected(nodeid: str, expected: dict[str, str]) -> bool:
    test = nodeid.partition("[")[0].partition("@")[0]
    return any(test == known or test.startswith((f"{known}/", f"{known}::")) for known in expected)


class SkipGuard:
    """Collects skips where reports arrive: in the only process, or in the one that xdist's workers report to."""

    def __init__(self, expected: dict[str, str]) -> None:
        self.expected = expected
        self.unexpected: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._skipped(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._skipped(report)

    def _skipped(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not is_expected(report.nodeid, self.expected):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self.unexpected[report.nodeid] = reason

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.unexpected and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.unexpected:
            return
        terminalreporter.section("skipped, but not in tests/expected-skips.txt", red=True)
        for nodeid, reason in sorted(self.unexpected.items()):
            terminalreporter.line(f"{nodeid}: {reason}")


def pytest_configure(config: pytest.Config) -> None:
    is_worker = hasattr(config, "workerinput")
    if os.environ.get("CI") == "true" and not is_worker:
        config.pluginmanager.register(SkipGuard(read_expected(config.rootpath / "tests" / "expected-skips.txt")))
