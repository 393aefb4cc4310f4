"""Verbs that only a cluster with commands of its own knows, and those that mean something else on one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cockpit.backends.base import Announced, CommandPreview
from cockpit.backends.slurm.backend import CAPABILITIES as SLURM
from cockpit.model.capabilities import EMBEDDED
from cockpit.model.directives import MoveToTop, SendSignal, SignalTarget, SubmitScript, UpdateJob
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.present.tables.launch import LAUNCH_SCRIPT
from tests.headless.conftest import Desk
from tests.headless.test_schema import conforms, schema_of

SCRIPT = "#!/bin/bash\n#SBATCH --nodes=2\nsrun hostname\n"
JOB = b"{name: train, command: 'true', output: /o}"


@pytest.fixture
def slurm(reading: Desk) -> Desk:
    """A cluster that is handed scripts."""
    reading.backend.capabilities = SLURM
    return reading


@pytest.mark.req("SL-20")
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("cancel", "4711", "--signal", "USR1", "--yes"), SendSignal(4711, "USR1")),
        (
            ("cancel", "46_3", "--signal", "INT", "--to", "script", "--yes"),
            SendSignal(46, "INT", SignalTarget.SCRIPT, 3),
        ),
        (("update", "46_3", "Nice=5", "Comment=a=b"), UpdateJob(46, {"Nice": "5", "Comment": "a=b"}, 3)),
        (("top", "4711", "46_3"), MoveToTop(("4711", "46_3"))),
    ],
)
def test_each_verb_sends_its_request(slurm: Desk, words: tuple[str, ...], wanted: object) -> None:
    assert slurm(*words).code == 0
    assert slurm.backend.asked[-1] == ("direct", wanted)


def test_a_field_needs_a_value(slurm: Desk) -> None:
    assert slurm("update", "4711", "Nice").code == 64


def test_a_refusal_of_the_cluster_is_reported(slurm: Desk) -> None:
    slurm.backend.refusal = Refusal(RefusalKind.INVALID, "Slurm refused: Invalid feature specification")
    done = slurm("update", "4711", "Features=x")
    assert "Invalid feature specification" in done.err
    assert done.code != 0


@pytest.mark.req("SL-20")
def test_a_batch_script_is_submitted_as_it_is(slurm: Desk, tmp_path: Path) -> None:
    file = tmp_path / "job.sh"
    file.write_text(SCRIPT)
    done = slurm("submit", "--hold", "--dependency", "afterok:7,singleton", str(file))
    assert slurm.backend.asked[-1] == (
        "direct",
        SubmitScript(SCRIPT, ("--hold", "--dependency=afterok:7,singleton"), str(file)),
    )
    assert done.lines == [f"submitted {file} as 4800"]


@pytest.mark.req("SL-20")
def test_a_batch_script_has_arguments_and_a_command_needs_no_script(slurm: Desk, tmp_path: Path) -> None:
    file = tmp_path / "job.sh"
    file.write_text("#!/bin/sh\necho $1\n")
    slurm("submit", str(file), "--", "--epochs", "3")
    assert slurm.backend.asked[-1] == (
        "direct",
        SubmitScript("#!/bin/sh\necho $1\n", file=str(file), arguments=("--epochs", "3")),
    )
    slurm("submit", "-", "--", "x", stdin=SCRIPT.encode())
    assert slurm.backend.asked[-1] == ("direct", SubmitScript(SCRIPT, arguments=("x",)))
    assert slurm("submit", "--wrap", "make test").lines == ["submitted make test as 4800"]
    assert slurm.backend.asked[-1] == ("direct", SubmitScript("", wrap="make test"))
    for words in (("submit",), ("submit", "--wrap", "true", "--", "x"), ("submit", "-", "--", "x")):
        assert slurm(*words, stdin=JOB).code == 64
    slurm.backend.capabilities = EMBEDDED
    assert slurm("submit", "--wrap", "true").err.startswith("wrap: output goes to ")


@pytest.mark.req("LA-70")
def test_on_other_backends_a_batch_script_becomes_a_job(slurm: Desk, tmp_path: Path) -> None:
    slurm.backend.capabilities = EMBEDDED
    (tmp_path / "job.sh").write_text(SCRIPT)
    slurm("submit", str(tmp_path / "job.sh"))
    assert slurm.backend.asked[-1][0] == "submit"


@pytest.mark.req("SL-21")
def test_a_dry_run_shows_what_would_be_sent_to_the_cluster(slurm: Desk) -> None:
    assert slurm("launch", "--dry-run", "-", stdin=JOB).lines == [
        "sbatch --job-name=train <<'END_OF_SCRIPT'",
        "#!/bin/sh",
        "true",
        "END_OF_SCRIPT",
    ]
    document = json.loads(slurm("launch", "--dry-run", "-", "-o", "json", stdin=JOB).out)
    assert document["rows"] == [
        {"name": "train", "argv": ["sbatch", "--job-name=train"], "script": "#!/bin/sh\ntrue\n"}
    ]
    assert conforms(document, schema_of(slurm, LAUNCH_SCRIPT.name))


def test_a_dry_run_reports_unsupported_fields(slurm: Desk) -> None:
    slurm.backend.refusal = Refusal(RefusalKind.INVALID, "jobs[0].volumes: Slurm mounts nothing")
    assert slurm("launch", "--dry-run", "-", stdin=JOB).err.startswith("stdin: volumes: Slurm mounts nothing")


@pytest.mark.req("SL-21")
def test_the_commands_that_will_run_are_printed_and_with_the_option_none_runs(
    slurm: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Announced] = []
    ran: list[bool] = []

    async def hold(*_: object, **__: object) -> None:
        ran.append(await looks[-1]([CommandPreview(("sbatch", "--hold"), "#!/bin/sh\ntrue\n")]))

    monkeypatch.setattr(slurm.backend, "announce", lambda look, **_: looks.append(look))
    monkeypatch.setattr(slurm.backend, "hold", hold)
    assert slurm("hold", "4711").err == "+ sbatch --hold\n"
    shown = slurm("hold", "4711", "--show-commands").err.splitlines()
    assert (shown[0].startswith("+ sbatch --hold"), "true" in shown) == (True, True)
    assert not any(line.startswith("+") for line in shown[1:])
    assert ran == [True, False]
