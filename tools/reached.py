"""Which tests call which functions, for tools/mutants.py: `noting` for the sources, and a plugin of pytest.

`noting` adds to each function of interest a statement that creates a file when it runs, in whatever process. This costs
about a microsecond for each call of these functions and nothing elsewhere; a trace function slows all calls down and
sees one process only. coverage.py records contexts in the tests' own process only.

With `REACHED_FOLDER`, the folder of these files, the plugin notes after each test which files it made, and `REACHED` is
written: for each file the seconds of each test that made it, by node id, and which tests failed.
With `REACHED_ONLY` (a file of node ids) only these tests run.
"""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

NOTE: Final = (
    "(lambda os: os.access({folder!r}, 2) and not os.access({file!r}, 0)"
    " and os.close(os.open({file!r}, os.O_CREAT | os.O_WRONLY)))(__import__('os'))"
)
"""Runs where nothing of this project can be imported, and does nothing where the folder cannot be seen."""
COMPOUND: Final = (
    ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match,
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef,
)  # fmt: skip
"""Statements that cannot follow another one on its line."""


def noting(source: str, files: dict[int, str]) -> str:
    """Insert statements that create a file when a function is called.

    `files` names the file of each function, by the line on which the function or its first decorator begins.
    """
    lines = source.encode().splitlines(keepends=True)
    functions = [
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    for node in sorted(functions, key=lambda each: each.lineno, reverse=True):  # so that earlier lines keep their place
        body = [each for each in node.body if not _is_docstring(each)]
        file = files.get(_first_line(node))
        if file is not None and body:
            at, column = _first_line(body[0]) - 1, body[0].col_offset
            line = lines[at]
            is_simple = not isinstance(body[0], COMPOUND)
            column = column if is_simple else len(line) - len(line.lstrip())
            after = b"; " if is_simple else b"\n" + line[:column]
            lines[at] = (
                line[:column] + NOTE.format(file=file, folder=str(Path(file).parent)).encode() + after + line[column:]
            )
    return b"".join(lines).decode()


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min(node.lineno, *(each.lineno for each in decorators)) if decorators else node.lineno


class Recorder:
    """Notes which tests call the functions whose sources note calls in a folder."""

    def __init__(self, folder: Path, written: Path) -> None:
        self.folder = folder
        self.written = written
        self.called_by: dict[str, dict[str, float]] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        for file in self.folder.iterdir():
            file.unlink(missing_ok=True)
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for file in self.folder.iterdir():
            seconds = self.called_by.setdefault(file.name, {})
            seconds[report.nodeid] = seconds.get(report.nodeid, 0) + report.duration
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.written.write_text(json.dumps({"called_by": self.called_by, "failed": sorted(self.failed)}))


class Selection:
    """Leaves out all tests but those named."""

    def __init__(self, wanted: set[str]) -> None:
        self.wanted = wanted

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self.wanted]


def pytest_configure(config: pytest.Config) -> None:
    if folder := os.environ.get("REACHED_FOLDER"):
        config.pluginmanager.register(Recorder(Path(folder), Path(os.environ["REACHED"])))
    if only := os.environ.get("REACHED_ONLY"):
        config.pluginmanager.register(Selection(set(json.loads(Path(only).read_text()))))
