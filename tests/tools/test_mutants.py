from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tools.mutants import (
    CHECKOUT,
    LAYERS,
    OUT_OF_TIME,
    Laboratory,
    Mutation,
    mutations,
    sample,
    stages_after_callers,
)
from tools.reached import noting


def results(source: str) -> set[tuple[str, str]]:
    found = mutations(source, "a.py")
    return {(each.operator, each.applied(source.encode()).decode()) for each in found}


@pytest.mark.parametrize(
    ("source", "operator", "mutated"),
    [
        ("a = b == c", "comparison inverted", "a = (b != c)"),
        ("a = b < c", "comparison inverted", "a = (b >= c)"),
        ("a = b and c", "and to or", "a = (b or c)"),
        ("a = b or c", "or to and", "a = (b and c)"),
        ("a = b or 0.0", "default dropped", "a = (b)"),
        ("a = not b", "not dropped", "a = (b)"),
        ("a = b + c", "+ and - swapped", "a = (b - c)"),
        ("a = True", "constant changed", "a = (False)"),
        ("a = 3", "constant changed", "a = (4)"),
        ("if a: b", "condition negated", "if (not a): b"),
        ("a.add(b)", "statement removed", "pass"),
        ("a += b", "statement removed", "pass"),
        ("def f(): return a", "return value dropped", "def f(): return None"),
    ],
)
def test_each_operator_changes_what_it_names(source: str, operator: str, mutated: str):
    assert (operator, mutated) in results(source)


def test_text_beyond_ascii_is_replaced_at_its_bytes():
    assert ("comparison inverted", "a = '×'; b = (c != d)") in results("a = '×'; b = c == d")


def test_what_does_not_run_is_not_mutated():
    checking = "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    b(1)\n"
    source = f'"""Doc."""\nimport a\n{checking}def f(c: "list[1]") -> d[1]:\n    """Doc."""\n'
    assert results(source) == set()


def test_keywords_that_change_only_the_storage_of_objects_are_not_mutated():
    source = (
        "@dataclass(frozen=True, slots=True)\nclass A(Struct, frozen=True, kw_only=True, order=True, eq=False): ...\n"
    )
    assert results(source) == set()
    assert results("A = defstruct('A', [], frozen=True)") == set()


def test_the_assertion_of_zip_is_not_mutated_and_other_strictness_is():
    assert results("a = zip(b, c, strict=True)") == set()
    assert results("a = zip(b, c if d else e, strict=True)") != set()
    assert results("a = path.resolve(strict=True)") == {("constant changed", "a = path.resolve(strict=(False))")}


def test_keywords_that_change_what_is_written_are_mutated():
    found = results("class A(Struct, omit_defaults=True, frozen=True): ...")
    assert found == {("constant changed", "class A(Struct, omit_defaults=(False), frozen=True): ...")}


def test_a_mutation_names_the_function_around_it():
    source = "a = 1\n@b\ndef f():\n    return [2 for each in c()]\n"
    assert {(each.line, each.function) for each in mutations(source, "a.py")} == {(1, None), (4, 2)}


def test_every_mutation_of_a_real_file_is_a_program():
    source = (CHECKOUT / "cockpit/sched/shortage.py").read_text()
    found = mutations(source, "a.py")
    assert len(found) > 50
    for each in found:
        compile(each.applied(source.encode()), "a.py", "exec")


def test_a_seed_takes_the_same_sample_and_another_seed_another():
    assert sample(CHECKOUT, "sched", 20, 1) == sample(CHECKOUT, "sched", 20, 1)
    assert sample(CHECKOUT, "sched", 20, 1) != sample(CHECKOUT, "sched", 20, 2)


def test_a_sample_leaves_out_the_layers_inside_of_its_layer():
    files = {each.file for each in sample(CHECKOUT, "runtime", 2000, 1)}
    assert [file for file in files if file.startswith("cockpit/runtime/containers/")] == []
    assert [file for file in files if file.startswith("cockpit/runtime/cards/")] != []


def test_every_layer_and_its_tests_exist():
    assert [layer for layer in LAYERS if not (CHECKOUT / "cockpit" / layer).is_dir()] == []
    assert [path for paths in LAYERS.values() for path in paths if not (CHECKOUT / path).exists()] == []


def a_project(tmp_path: Path, source: str, test: str) -> Path:
    """A project whose package has one module, and one file of tests."""
    project = tmp_path / "project"
    (project / "cockpit").mkdir(parents=True)
    (project / "cockpit/__init__.py").touch()
    (project / "cockpit/a.py").write_text(source)
    (project / "test_a.py").write_text(test)
    (project / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    return project


def test_a_mutation_that_a_test_sees_is_killed_and_another_survives(tmp_path: Path):
    source = "def larger(a, b):\n    note = 1\n    return a > b\n"
    project = a_project(tmp_path, source, "from cockpit.a import larger\ndef test_it():\n    assert larger(2, 1)\n")
    laboratory = Laboratory(tmp_path / "copy", project)
    stages = [["test_a.py"]]
    by_operator: dict[str, Mutation] = {each.operator: each for each in mutations(source, "cockpit/a.py")}
    assert laboratory.passes(stages[0], 60)
    assert not laboratory.survives(by_operator["comparison inverted"], stages, 60)
    assert laboratory.killed_by == "test_a.py::test_it"
    assert laboratory.survives(by_operator["constant changed"], stages, 60)
    assert (project / "cockpit/a.py").read_text() == source == (tmp_path / "copy/cockpit/a.py").read_text()


def test_a_mutation_after_which_the_tests_do_not_end_is_told_from_one_that_a_test_sees(tmp_path: Path):
    source = "def wait(a):\n    while a:\n        pass\n"
    project = a_project(tmp_path, source, "from cockpit.a import wait\ndef test_it():\n    wait(0)\n")
    laboratory = Laboratory(tmp_path / "copy", project)
    (endless,) = mutations(source, "cockpit/a.py")
    assert not laboratory.survives(endless, [["test_a.py"]], 10)
    assert laboratory.killed_by == OUT_OF_TIME


def test_the_tests_that_call_the_mutated_function_are_known_and_suffice(tmp_path: Path):
    project = tmp_path / "project"
    (project / "cockpit").mkdir(parents=True)
    source = "def larger(a, b):\n    return a > b\n"
    (project / "cockpit/__init__.py").touch()
    (project / "cockpit/a.py").write_text(source)
    tests = "from cockpit.a import larger\ndef test_one():\n    assert larger(2, 1)\ndef test_other():\n    pass\n"
    (project / "test_b.py").write_text(tests)
    (project / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    laboratory = Laboratory(tmp_path / "copy", project)
    inverted = next(each for each in mutations(source, "cockpit/a.py") if each.operator == "comparison inverted")
    assert laboratory.learn(["test_b.py"], [inverted], 60)
    assert list(laboratory.callers(inverted)) == ["test_b.py::test_one"]
    assert not laboratory.survives(inverted, [], 60)


def test_a_call_in_another_process_is_known_and_a_test_that_fails_without_a_mutation_is_left_out(tmp_path: Path):
    project = tmp_path / "project"
    (project / "cockpit").mkdir(parents=True)
    (project / "cockpit/__init__.py").touch()
    (project / "cockpit/a.py").write_text("def larger(a, b):\n    if a > b:\n        return True\n    return False\n")
    (project / "test_b.py").write_text(
        "import subprocess, sys\n"
        "def test_one():\n"
        "    words = [sys.executable, '-c', 'from cockpit.a import larger; assert larger(2, 1)']\n"
        "    assert subprocess.run(words).returncode == 0\n"
        "def test_other():\n"
        "    from cockpit.a import larger\n"
        "    assert larger(1, 2)\n"
    )
    laboratory = Laboratory(tmp_path / "copy", project)
    source = (project / "cockpit/a.py").read_text()
    inverted = next(each for each in mutations(source, "cockpit/a.py") if each.operator == "comparison inverted")
    assert laboratory.learn(["test_b.py"], [inverted], 60)
    assert (tmp_path / "copy/cockpit/a.py").read_text() == source
    assert laboratory.failing == {"test_b.py::test_other"}
    assert list(laboratory.callers(inverted)) == ["test_b.py::test_one"]
    assert laboratory.passes(["test_b.py"], 60)
    assert not laboratory.survives(inverted, [], 60)


def test_calls_of_the_wanted_functions_are_noted_wherever_their_first_statement_stands(tmp_path: Path):
    source = (
        "def one(): return 1\n"
        "def two():\n"
        '    """Doc."""\n'
        "    for _ in range(1):\n"
        "        return 2\n"
        "@staticmethod\n"
        "def three():\n"
        "    @staticmethod\n"
        "    def four(): return 4\n"
        "    return four()\n"
        "def five():\n"
        "    return '×'\n"
    )
    lines = {"one": 1, "two": 2, "three": 6, "four": 8, "five": 11}
    names: dict[str, Callable[[], object]] = {}
    exec(noting(source, {line: str(tmp_path / name) for name, line in lines.items()}), names)
    assert list(tmp_path.iterdir()) == []
    assert [names[name]() for name in ("one", "two", "three", "five")] == [1, 2, 4, "×"]
    assert {each.name for each in tmp_path.iterdir()} == set(lines)


def test_a_statement_outside_of_functions_runs_the_tests_of_its_layer_even_where_only_callers_are_wanted(
    tmp_path: Path,
):
    project = tmp_path / "project"
    (project / "cockpit").mkdir(parents=True)
    source = "LARGEST = 5\ndef fits(a):\n    return a <= LARGEST\n"
    (project / "cockpit/__init__.py").touch()
    (project / "cockpit/a.py").write_text(source)
    (project / "test_own.py").write_text("from cockpit.a import LARGEST\ndef test_it():\n    assert LARGEST == 5\n")
    (project / "test_related.py").write_text("def test_it():\n    pass\n")
    (project / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    by_operator = {each.operator: each for each in mutations(source, "cockpit/a.py")}
    outside, inside = by_operator["constant changed"], by_operator["comparison inverted"]
    in_order = [["test_own.py"], ["test_related.py"]]
    assert stages_after_callers(inside, in_order, callers_only=True) == []
    assert stages_after_callers(outside, in_order, callers_only=True) == [["test_own.py"]]
    assert stages_after_callers(outside, in_order, callers_only=False) == in_order
    laboratory = Laboratory(tmp_path / "copy", project)
    assert laboratory.survives(outside, [], 60)
    assert not laboratory.survives(outside, [["test_own.py"]], 60)
