"""Measures how many small mistakes the tests of each layer miss.

1. Every possible mutation of a layer's files is listed, and a seeded sample of them is taken.
2. The tests of the layer run once without a mutation. They bound the time of the next steps, and show which tests call
   the functions to be mutated, in any process (tools/reached.py). Tests that fail here are left out of the next steps.
3. Each mutation is written into a temporary copy of the project. The tests that call the mutated function run first,
   then the layer's own tests, then the related ones, until one run fails or takes too long: the mutation is killed.
   The second and third step find what is seen only in a process that cannot write to this machine's files, or through
   a value made once for many tests. `--callers-only` leaves them out, except for statements outside of
   functions: this is quicker and counts a few survivors too many.
4. Those that survive are printed as diffs, with the share per layer, and written to mutants.json. Of each killed one
   the failing test is printed, or that the time ran out: on a busy machine that may say nothing about the tests.

The mutations are made here because neither well-kept tool fits a seeded sample of one layer. mutmut 3.8 measures a
whole project and has no seed; cosmic-ray 8.7 mutates the work tree itself and needs a database and a dozen packages.
Neither of them removes a statement such as a call, which is the mistake that these tests missed most.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Final

from tools.reached import noting

CHECKOUT: Final = Path(__file__).parents[1]
REPORT: Final = "mutants.json"
NOT_COPIED: Final = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", ".benchmarks", "*.egg-info"
)

LAYERS: Final[dict[str, tuple[str, ...]]] = {
    "model": ("tests/model", "tests/launch", "tests/engine"),
    "launch": ("tests/launch", "tests/engine"),
    "sched": ("tests/sched", "tests/engine"),
    "engine": ("tests/engine", "tests/scenarios"),
    "formats": ("tests/formats", "tests/launch", "tests/config"),
    "present": ("tests/present", "tests/headless"),
    "protocol": ("tests/protocol", "tests/runtime/test_server.py"),
    "store": ("tests/store", "tests/backends/test_contract.py"),
    "config": ("tests/config", "tests/headless"),
    "headless": ("tests/headless", "tests/docs"),
    "runtime": ("tests/runtime", "tests/backends/test_contract.py"),
    "runtime/containers": ("tests/runtime/containers", "tests/e2e"),
    "backends/slurm/mapping": ("tests/backends/slurm", "tests/real/slurm"),
    "backends/slurm": ("tests/backends/slurm", "tests/real/slurm"),
    "backends/fleet": ("tests/backends/fleet", "tests/clusters", "tests/tui/test_clusters.py"),
    "backends/kubernetes": ("tests/backends/kubernetes", "tests/backends/test_contract.py"),
    "backends/demo": ("tests/backends/demo", "tests/backends/test_contract.py"),
    "serve": ("tests/serve", "tests/e2e/test_served_rights.py"),
    "tui": ("tests/tui",),
}
"""The test paths of each layer: first its own, then the related ones, in the order in which they run."""

COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
STORAGE_KEYWORDS: Final = frozenset(
    {"frozen", "kw_only", "slots", "order", "eq", "gc", "cache_hash", "dict", "weakref"}
)
"""Keywords of a class, or of a call that makes one, by which only the storage and comparison of its objects change."""

OUT_OF_TIME: Final = "the end of its time"
TIMED_OUT: Final = (124, 137, -9)
"""The exit codes of `timeout`: after its first signal, and after KILL, which ends itself too."""

ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}


@dataclass(frozen=True)
class Mutation:
    """One small mistake: the bytes of a file from `start` to `end` are replaced."""

    file: str
    line: int
    operator: str
    start: int
    end: int
    replacement: str
    function: int | None
    """The line on which the innermost function around it begins; None outside of functions."""

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.replacement.encode() + source[self.end :]

    def diff(self, source: bytes) -> str:
        before, after = (text.decode().splitlines() for text in (source, self.applied(source)))
        return "\n".join(difflib.unified_diff(before, after, self.file, self.operator, lineterm="", n=1))


def mutations(source: str, file: str) -> list[Mutation]:
    """Every mutation of a file, in the order of its text."""
    offsets = [0]
    for line in source.encode().splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    found = []
    for node, function in _mutable(ast.parse(source)):
        for operator, target, mutated in _mutated(node):
            start = offsets[target.lineno - 1] + target.col_offset
            end = offsets[(target.end_lineno or target.lineno) - 1] + (target.end_col_offset or 0)
            text = ast.unparse(mutated)
            replacement = f"({text})" if isinstance(mutated, ast.expr) else text
            found.append(Mutation(file, target.lineno, operator, start, end, replacement, function))
    return sorted(found, key=lambda each: (each.start, each.end, each.operator, each.replacement))


def _mutable(node: ast.AST, function: int | None = None) -> Iterator[tuple[ast.AST, int | None]]:
    """Nodes that run, each with the line of its function: annotations and what is imported for them, decorators,
    docstrings, imports, formatted strings, storage keywords and zip's `strict`, which only asserts, are passed over."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr) or _is_docstring(node) or _is_type_checking(node):
        return
    if isinstance(node, ast.keyword) and node.arg in STORAGE_KEYWORDS:
        return
    yield node, function
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = min(each.lineno for each in (node, *node.decorator_list))
    passed_over = {"keywords"} if _is_zip(node) else {"annotation", "returns", "decorator_list"}
    for name, value in ast.iter_fields(node):
        if name not in passed_over:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _mutable(child, function)


def _is_zip(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip"


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_type_checking(node: ast.AST) -> bool:
    """Whether the node is `if TYPE_CHECKING: …`, or the `TYPE_CHECKING = False` of a module without `typing`."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Assign(targets=[ast.Name(id="TYPE_CHECKING")]):
            return True
    return False


Change = tuple[str, ast.stmt | ast.expr, ast.stmt | ast.expr]
"""The operator's name, the node that it replaces and the replacement."""


def _mutated(node: ast.AST) -> Iterator[Change]:
    yield from _changed_statement(node)
    yield from _changed_condition(node)
    yield from _changed_value(node)


def _changed_statement(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Continue() | ast.Break():
            yield "statement removed", node, ast.Pass()
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "return value dropped", node, ast.Return(ast.Constant(None))
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            if isinstance(test, ast.Name | ast.Attribute | ast.Call):  # other tests have operators of their own
                yield "condition negated", test, ast.UnaryOp(ast.Not(), test)


def _changed_condition(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Compare(ops=[one]) if type(one) in COMPARISONS:
            yield "comparison inverted", node, ast.Compare(node.left, [COMPARISONS[type(one)]()], node.comparators)
        case ast.BoolOp(op=ast.And(), values=values):
            yield "and to or", node, ast.BoolOp(ast.Or(), values)
        case ast.BoolOp(op=ast.Or(), values=[*first, last] as values):
            yield "or to and", node, ast.BoolOp(ast.And(), values)
            if isinstance(last, ast.Constant | ast.Tuple | ast.List | ast.Dict):
                yield "default dropped", node, first[0] if len(first) == 1 else ast.BoolOp(ast.Or(), first)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            yield "not dropped", node, inner


def _changed_value(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.BinOp(op=one) if type(one) in ARITHMETIC:
            yield "+ and - swapped", node, ast.BinOp(node.left, ARITHMETIC[type(one)](), node.right)
        case ast.Constant(value=bool(value)):
            yield "constant changed", node, ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield "constant changed", node, ast.Constant(value + 1)


def sample(root: Path, layer: str, size: int, seed: int) -> list[Mutation]:
    """The same mutations for the same files, size and seed. The files of a layer inside of this one are left out."""
    inner = [root / "cockpit" / each for each in LAYERS if each.startswith(f"{layer}/")]
    within = sorted((root / "cockpit" / layer).rglob("*.py"))
    files = [file for file in within if not any(file.is_relative_to(each) for each in inner)]
    every = [each for file in files for each in mutations(file.read_text(), str(file.relative_to(root)))]
    return random.Random(f"{layer} {seed}").sample(every, min(size, len(every)))  # noqa: S311 - no secret


class Laboratory:
    """A copy of the project in which mutations are made and tests run."""

    def __init__(self, root: Path, checkout: Path = CHECKOUT) -> None:
        self.root = root
        shutil.copytree(checkout, root, ignore=NOT_COPIED, symlinks=True, dirs_exist_ok=True)
        if (checkout / ".venv").exists():
            (root / ".venv").symlink_to(checkout / ".venv")
        self._times = count(1)
        self._output = root / ".pytest.txt"
        self._callers: dict[tuple[str, int | None], dict[str, float]] = {}
        self.failing: set[str] = set()
        """The tests that fail without a mutation."""
        self.killed_by = ""
        """The test that failed last, or OUT_OF_TIME."""

    def passes(self, tests: list[str], seconds: float, **reached: Path) -> bool:
        """Whether the tests pass within the time. If they do not, `killed_by` tells why."""
        code = self._run(["-x", *(f"--deselect={test}" for test in self.failing), *tests], seconds, reached)
        if code in TIMED_OUT:
            self.killed_by = OUT_OF_TIME
        elif code:
            summary = re.findall(r"^(?:FAILED|ERROR) (\S+)", self._output.read_text(errors="replace"), re.MULTILINE)
            self.killed_by = summary[0] if summary else f"pytest's exit code {code}"
        return code == 0

    def _run(self, words: list[str], seconds: float, reached: dict[str, Path]) -> int:
        """Run pytest and return its exit code. INT lets late tests remove what they have made."""
        limited = ["timeout", "--signal=INT", "--kill-after=20", str(round(seconds))]
        options = ["-q", "-p", "no:cacheprovider", "-p", "tools.reached"]
        paths = os.pathsep.join([str(self.root), str(CHECKOUT)])
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": ""}
        environment |= {name: str(path) for name, path in reached.items()}
        command = [*limited, sys.executable, "-m", "pytest", *options, *words]
        with self._output.open("w") as output:  # no pipe: a process that a test left behind would hold it open
            return subprocess.run(command, cwd=self.root, env=environment, stdout=output, check=False).returncode

    def learn(self, tests: list[str], chosen: list[Mutation], seconds: float) -> bool:
        """Run the tests without a mutation, learn which of them call the functions to be mutated, and which fail.

        The result is false if the tests did not come to their end.
        """
        functions = sorted({(each.file, each.function) for each in chosen if each.function})
        answered = self.root / ".reached.json"
        with tempfile.TemporaryDirectory(prefix="reached-") as folder:
            Path(folder).chmod(0o1777)  # other users' processes note calls too
            before = {file: (self.root / file).read_bytes() for file, _ in functions}
            for file, source in before.items():
                lines = {line: f"{folder}/{at}" for at, (of, line) in enumerate(functions) if of == file}
                self._write(file, noting(source.decode(), lines).encode())
            try:
                ended = self._run(tests, seconds, {"REACHED_FOLDER": Path(folder), "REACHED": answered}) in (0, 1)
            finally:
                for file, source in before.items():
                    self._write(file, source)
        if ended:
            learned = json.loads(answered.read_text())
            self.failing |= set(learned["failed"])
            for at, called_by in learned["called_by"].items():
                self._callers.setdefault(functions[int(at)], {}).update(called_by)
        return ended

    def callers(self, mutation: Mutation) -> dict[str, float]:
        """The tests that call the mutated function and pass without a mutation, with their seconds."""
        called_by = self._callers.get((mutation.file, mutation.function), {})
        return {test: seconds for test, seconds in called_by.items() if test not in self.failing}

    def survives(self, mutation: Mutation, stages: list[list[str]], seconds: float) -> bool:
        source = (self.root / mutation.file).read_bytes()
        self._write(mutation.file, mutation.applied(source))
        try:
            return self._passes_callers(mutation, seconds) and all(self.passes(tests, seconds) for tests in stages)
        finally:
            self._write(mutation.file, source)

    def _passes_callers(self, mutation: Mutation, seconds: float) -> bool:
        """Whether the tests that call the mutated function pass: first a file named like its file, then quick files."""
        called_by = self.callers(mutation)
        if not called_by:
            return True
        seconds_of: dict[str, float] = {}
        for test, took in called_by.items():
            file = test.partition("::")[0]
            seconds_of[file] = seconds_of.get(file, 0) + took
        named = f"test_{Path(mutation.file).stem}.py"
        files = sorted(seconds_of, key=lambda file: (Path(file).name != named, seconds_of[file], file))
        only = self.root / ".reached_only.json"
        only.write_text(json.dumps(sorted(called_by)))
        return self.passes(files, seconds, REACHED_ONLY=only)

    def _write(self, file: str, source: bytes) -> None:
        """Each version gets another time, or Python would take bytecode of the same second for this version's."""
        path, at = self.root / file, next(self._times)
        path.write_bytes(source)
        os.utime(path, (at, at))


def stages(layer: str, *, related: bool) -> list[list[str]]:
    """The tests of a layer in the order of their runs: its own, then the related ones."""
    own, *others = LAYERS[layer]
    return [each for each in ([own], others if related else []) if each]


def stages_after_callers(mutation: Mutation, in_order: list[list[str]], *, callers_only: bool) -> list[list[str]]:
    """The tests that run for a mutation after those that call its function: with `callers_only` none, but the layer's
    own for a statement outside of functions, which no test calls."""
    if not callers_only:
        return in_order
    return [] if mutation.function else in_order[:1]


def measure(layer: str, wanted: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Tries samples of a layer's mutations, and prints the survivors as they are found."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        laboratory = Laboratory(Path(folder))
        samples = {seed: sample(laboratory.root, layer, wanted.count, seed) for seed in wanted.seed or [1]}
        began = time.monotonic()
        in_order = stages(layer, related=wanted.related)
        for tests in in_order:
            if not laboratory.learn(tests, [each for chosen in samples.values() for each in chosen], wanted.limit):
                sys.exit(f"mutants: {' '.join(tests)} does not end without a mutation; mend this first")
        for test in sorted(laboratory.failing):
            print(f"mutants: {test} fails without a mutation and is left out", flush=True)
        seconds = min(wanted.limit, 4 * (time.monotonic() - began) + 60)
        for seed, chosen in samples.items():
            survivors, out_of_time = [], 0
            for mutation in chosen:
                after = stages_after_callers(mutation, in_order, callers_only=wanted.callers_only)
                if laboratory.survives(mutation, after, seconds):
                    survivors.append(mutation)
                    print(mutation.diff((laboratory.root / mutation.file).read_bytes()), end="\n\n", flush=True)
                else:
                    out_of_time += laboratory.killed_by == OUT_OF_TIME
                    where = f"{mutation.file}:{mutation.line} {mutation.operator}"
                    print(f"{where}: killed by {laboratory.killed_by}", flush=True)
            share = 100 * len(survivors) / max(1, len(chosen))
            late = f", {out_of_time} killed by time alone" if out_of_time else ""
            print(f"{layer}: {len(survivors)} of {len(chosen)} survived ({share:.0f} %), seed {seed}{late}", flush=True)
            survived = [asdict(each) for each in survivors]
            yield {"layer": layer, "seed": seed, "count": len(chosen), "survivors": survived}


def main() -> None:
    parser = argparse.ArgumentParser(prog="make mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--layer", action="append", choices=sorted(LAYERS), help="may be repeated; default: all")
    parser.add_argument("--count", type=int, default=25, help="mutations of each layer (25)")
    parser.add_argument("--seed", type=int, action="append", help="may be repeated: each seed takes another sample (1)")
    parser.add_argument(
        "--limit", type=float, default=600, help="the longest time of one run of tests, in seconds (600)"
    )
    parser.add_argument("--related", action=argparse.BooleanOptionalAction, default=True, help="run related tests too")
    parser.add_argument("--callers-only", action="store_true", help="run only tests that call the mutated function")
    wanted = parser.parse_args()
    measured = [each for layer in wanted.layer or LAYERS for each in measure(layer, wanted)]
    (CHECKOUT / REPORT).write_text(json.dumps(measured, indent=1) + "\n")


if __name__ == "__main__":
    main()
