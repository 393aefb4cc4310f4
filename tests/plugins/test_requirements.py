from __future__ import annotations

import json
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def run(pytester: pytest.Pytester):
    """Runs a suite of one file and gives its result and what it proved."""
    pytester.syspathinsert(CHECKOUT)
    pytester.makeini("[pytest]\nmarkers =\n    req(id, ...): proves\n")

    def run_file(test_file: str, *arguments: str) -> tuple[pytest.RunResult, dict[str, dict[str, str]]]:
        pytester.makepyfile(test_jobs="import pytest\n" + test_file)
        result = pytester.runpytest(
            "-p", "no:asyncio", "-p", "tests.plugins.requirements", "--requirements=proved.json", *arguments
        )
        return result, json.loads((pytester.path / "proved.json").read_text())

    return run_file


MIXED = """
@pytest.mark.req("JT-01", "JT-07")
def test_passes(): pass

@pytest.mark.req("JT-02")
def test_skipped(): pytest.skip("no")

@pytest.mark.req("JT-03")
@pytest.mark.xfail
def test_expected_to_fail(): assert False

@pytest.fixture
def broken():
    yield
    raise RuntimeError("left something behind")

@pytest.mark.req("JT-04")
def test_fails_afterwards(broken): pass
"""


@pytest.mark.parametrize("arguments", [(), ("-n", "1")], ids=["one process", "workers"])
def test_a_run_records_how_the_tests_of_each_id_ended(run, arguments: tuple[str, ...]):
    _, proved = run(MIXED, *arguments)
    assert proved == {
        "JT-01": {"test_jobs.py::test_passes": "passed"},
        "JT-07": {"test_jobs.py::test_passes": "passed"},
        "JT-02": {"test_jobs.py::test_skipped": "skipped"},
        "JT-03": {"test_jobs.py::test_expected_to_fail": "skipped"},
        "JT-04": {"test_jobs.py::test_fails_afterwards": "failed"},
    }


def test_a_test_with_more_than_three_ids_is_not_collected(run):
    result, proved = run('@pytest.mark.req("JT-01", "JT-02", "JT-03", "JT-04")\ndef test_all(): pass\n')
    result.stdout.fnmatch_lines(["*test_all carries 4 requirement ids*"])
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert proved == {}


def test_ids_of_a_class_count_for_its_tests(run):
    inside = '    @pytest.mark.req("JT-04")\n    def test_x(self): pass\n'
    result, _ = run(f'@pytest.mark.req("JT-01", "JT-02", "JT-03")\nclass TestAll:\n{inside}')
    result.stdout.fnmatch_lines(["*carries 4 requirement ids*"])


@pytest.mark.parametrize("word", ["XX-01", "JT-1", "jt-01", "JT-01 "])
def test_an_unknown_id_is_not_collected(run, word: str):
    result, _ = run(f'@pytest.mark.req("{word}")\ndef test_x(): pass\n')
    result.stdout.fnmatch_lines([f"*'{word}' is no requirement id*"])
