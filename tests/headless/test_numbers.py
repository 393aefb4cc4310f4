"""Whatever number stands in a command, it is done, or refused in a sentence."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cockpit.headless.arguments import load
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.registry import VERBS
from tests.formats.numbers import HOSTILE, variants
from tests.headless.conftest import Desk

OPTIONS = ("--filter=id:{}", "--filter=cards>={}", "--columns={}", "--sort={}", "--filter=wait>{}h")
ELSEWHERE = {"demo", "play", "replay", "tensorboard", "shell", "session", "engine unit", "clusters", "wait", "metrics"}
"""They begin what does not end by itself, or need more than a cluster of plain rows."""


@pytest.mark.req("TR-05")
@pytest.mark.parametrize("name", [name for name in VERBS if name not in ELSEWHERE])
def test_a_hostile_number_in_a_command_is_no_defect(
    desk: Desk, name: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    for example in load(name).examples:
        command = next(part for part in re.split(r" (?:\||&&|>) ", example) if part.startswith("cockpit"))
        for hostile in variants(command.removeprefix("cockpit ")):
            done = desk(*shlex.split(hostile))
            assert done.code != ExitCode.INTERNAL, (hostile[:200], done.err[:300])


@pytest.mark.req("TR-05")
@pytest.mark.parametrize("number", ["65536", "9" * 5000, "-1", "1e3", "٣", "0x50", "80 80"])
def test_a_hostile_number_is_no_port(desk: Desk, number: str) -> None:
    assert desk("metrics", "--listen", number).code == ExitCode.USAGE


@pytest.mark.req("TR-05")
@pytest.mark.parametrize("number", HOSTILE)
@pytest.mark.parametrize(
    "option", ["--filter=id:{}", "--filter=cards>={}", "--columns={}", "--sort={}", "--filter=wait>{}h"]
)
def test_a_hostile_number_in_an_option_of_a_list_is_no_defect(desk: Desk, option: str, number: str) -> None:
    assert desk("jobs", option.format(number)).code != ExitCode.INTERNAL


@pytest.mark.req("TR-05")
@pytest.mark.parametrize("words", [("job",), ("cancel",), ("explain",), ("logs", "1", "--replica")])
def test_a_usage_error_repeats_only_the_beginning_of_a_long_argument(desk: Desk, words: tuple[str, ...]) -> None:
    done = desk(*words, "9" * 5_000)
    assert done.code == ExitCode.USAGE
    assert len(done.err) < 600


@pytest.mark.req("TR-05")
@pytest.mark.parametrize(
    "line",
    [
        *(f"jobs {option}" for option in OPTIONS),
        *("jobs --filter=nofield{}:3", "{}", "submit {}", "convert --to job {}", "catalogue set volume v{} path=/x"),
        *(
            "accounts add a MaxJobs={}",
            "reservations create a --nodes n --start {} --duration 1h",
            "launch --dry-run {}",
        ),
    ],
)
def test_no_error_repeats_all_of_a_number_of_thousands_of_digits(desk: Desk, line: str) -> None:
    done = desk(*line.format("9" * 5_000).split())
    assert done.code != ExitCode.OK
    assert len(done.err) < 1200


@pytest.mark.req("TR-05")
def test_no_error_in_a_batch_script_repeats_all_of_a_long_number(desk: Desk, tmp_path: Path) -> None:
    script = tmp_path / "x.sbatch"
    script.write_text(f"#!/bin/bash\n#SBATCH --begin=now+{'7' * 5_000}hours\ntrue\n")
    done = desk("submit", str(script))
    assert done.code == ExitCode.INVALID
    assert len(done.err) < 1200
