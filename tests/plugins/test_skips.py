from __future__ import annotations

from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
SKIPPED = "import pytest\ndef test_gone():\n    pytest.skip('no such card here')\ndef test_there():\n    pass\n"


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Runs a suite of one file as CI would, with these expected skips."""
    monkeypatch.setenv("CI", "true")
    pytester.syspathinsert(CHECKOUT)

    def run_with(test_file: str, expected: str = "", *arguments: str) -> pytest.RunResult:
        tests = pytester.mkdir("tests")
        (tests / "expected-skips.txt").write_text(expected)
        (tests / "test_cards.py").write_text(test_file)
        return pytester.runpytest("-p", "no:asyncio", "-p", "tests.plugins.skips", *arguments)

    return run_with


def test_a_skip_fails_the_run_and_is_named(run):
    result = run(SKIPPED)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*tests/test_cards.py::test_gone: *no such card here*"])


def test_a_skip_in_a_worker_fails_the_run_too(run):
    assert run(SKIPPED, "", "-n", "1").ret == pytest.ExitCode.TESTS_FAILED


def test_a_whole_module_that_is_skipped_fails_the_run(run):
    result = run("import pytest\npytest.skip('no cards', allow_module_level=True)\n")
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("node", ["tests/test_cards.py::test_gone", "tests/test_cards.py", "tests"])
def test_an_expected_skip_passes(run, node: str):
    assert run(SKIPPED, f"# why\n{node}: this machine has no cards\n").ret == pytest.ExitCode.OK


def test_an_expected_skip_without_a_reason_is_refused(run):
    result = run(SKIPPED, "tests/test_cards.py::test_gone\n")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*expected-skips.txt:1: write `node id: reason`*"])


def test_without_ci_skips_are_free(run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CI")
    assert run(SKIPPED).ret == pytest.ExitCode.OK


def test_an_expected_failure_is_no_skip(run):
    assert run("import pytest\n@pytest.mark.xfail\ndef test_x():\n    assert False\n").ret == pytest.ExitCode.OK
