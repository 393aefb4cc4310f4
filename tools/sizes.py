"""Prints how long files and functions are: something to look at, not a rule."""

from __future__ import annotations

import ast
from pathlib import Path
from statistics import median, quantiles

SHOWN = 12


def functions(file: Path) -> list[tuple[int, str]]:
    """Length in lines and name of every function of a file, its docstring not counted."""
    found = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            lines = (node.body[0].lineno - node.lineno) + ((node.end_lineno or 0) - body[0].lineno + 1)
            found.append((lines, f"{file}:{node.lineno} {node.name}"))
    return found


def report(title: str, sizes: list[tuple[int, str]]) -> None:
    lengths = [size for size, _ in sizes]
    ninth = quantiles(lengths, n=10)[-1]
    print(f"{title}: {len(sizes)}, median {median(lengths):.0f} lines, nine in ten under {ninth:.0f}")
    for size, name in sorted(sizes, reverse=True)[:SHOWN]:
        print(f"  {size:5}  {name}")


def main() -> None:
    files = sorted(Path("cockpit").rglob("*.py"))
    report("files", [(len(file.read_text().splitlines()), str(file)) for file in files])
    report("functions", [each for file in files for each in functions(file)])


if __name__ == "__main__":
    main()
