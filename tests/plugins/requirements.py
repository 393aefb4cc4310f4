"""Which promises a run proved: `@pytest.mark.req("JT-01")` on a test, collected into a file by `--requirements=FILE`.

Each id maps to how its tests ended, by node id: `{"JT-01": {"tests/…::test_name": "passed"}}`. What that means for the
state of a requirement is decided in tools/requirements.py.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

AREAS = ("JT", "LA", "SC", "EL", "FL", "SL", "KU", "UI", "TR", "PF")
ID = re.compile(rf"(?:{'|'.join(AREAS)})-\d\d")
MOST_IDS = 3


def ids_of(item: pytest.Item) -> list[str]:
    return [str(argument) for mark in item.iter_markers("req") for argument in mark.args]


def complaint(ids: list[str]) -> str | None:
    """What is wrong with the ids of one test, if anything."""
    malformed = [each for each in ids if not ID.fullmatch(each)]
    if malformed:
        return f"{malformed[0]!r} is no requirement id"
    if len(ids) > MOST_IDS:
        return f"carries {len(ids)} requirement ids: at most {MOST_IDS}, or it proves none of them well"
    return None


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Collector) -> Generator[None, object, object]:
    made = yield
    for item in made if isinstance(made, list) else [made]:
        wrong = complaint(ids_of(item)) if isinstance(item, pytest.Function) else None
        if wrong:
            raise collector.CollectError(f"{item.nodeid} {wrong}")
    return made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    report.requirements = ids_of(item)
    return report


def without_group(nodeid: str) -> str:
    """Without the name of the group whose tests share a worker."""
    return nodeid.rpartition("@")[0] if nodeid.rfind("@") > nodeid.rfind("]") else nodeid


class Record:
    """Outcomes by requirement and test. A test has passed when none of its phases failed or was skipped."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.outcomes: dict[str, dict[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome = "skipped" if hasattr(report, "wasxfail") else report.outcome
        nodeid = without_group(report.nodeid)
        for each in getattr(report, "requirements", ()):  # a report of a crashed worker has none
            tests = self.outcomes.setdefault(each, {})
            if tests.get(nodeid, "passed") == "passed":
                tests[nodeid] = outcome

    def pytest_sessionfinish(self) -> None:
        self.file.write_text(json.dumps(self.outcomes, indent=1, sort_keys=True) + "\n")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--requirements", type=Path, metavar="FILE", help="write which requirements the tests prove")


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("--requirements")
    if file and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Record(file))
