"""A plugin of pytest for tools/mutants.py: which tests call which functions, and runs of those tests alone.

With `REACHED_OF` (a file of `[file, first line]` pairs) each call of one of these functions is recorded for the test
that runs, and `REACHED` is written: for each function the seconds of each test that called it, by node id.
With `REACHED_ONLY` (a file of node ids) only these tests run.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

Function = tuple[str, int]
"""The absolute path of a file, and the line on which the function, or its first decorator, begins."""


class Recorder:
    """Notes the calls of some functions. Only calls are traced, no lines, so that the tests stay fast."""

    def __init__(self, functions: set[Function], written: Path) -> None:
        self.called_by: dict[Function, dict[str, float]] = {each: {} for each in functions}
        self.written = written
        self._called: set[Function] = set()

    def _note(self, frame: FrameType, *_: object) -> None:
        code = frame.f_code
        if (code.co_filename, code.co_firstlineno) in self.called_by:
            self._called.add((code.co_filename, code.co_firstlineno))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._called.clear()
        threading.settrace(self._note)
        sys.settrace(self._note)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            for function in self._called:
                self.called_by[function].setdefault(item.nodeid, 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for function in self._called:
            seconds = self.called_by[function]
            seconds[report.nodeid] = seconds.get(report.nodeid, 0) + report.duration

    def pytest_sessionfinish(self) -> None:
        rows = [[*function, seconds] for function, seconds in self.called_by.items()]
        self.written.write_text(json.dumps(rows))


class Selection:
    """Leaves out all tests but those named."""

    def __init__(self, wanted: set[str]) -> None:
        self.wanted = wanted

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self.wanted]


def pytest_configure(config: pytest.Config) -> None:
    if functions := os.environ.get("REACHED_OF"):
        wanted = {(file, line) for file, line in json.loads(Path(functions).read_text())}
        config.pluginmanager.register(Recorder(wanted, Path(os.environ["REACHED"])))
    if only := os.environ.get("REACHED_ONLY"):
        config.pluginmanager.register(Selection(set(json.loads(Path(only).read_text()))))
