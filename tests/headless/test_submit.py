"""`cockpit submit`: what it takes for a job of another system, and what it says about paths and refusals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from cockpit.errors import RequestRefused
from cockpit.formats.foreign import exchange
from cockpit.headless.exitcodes import ExitCode
from cockpit.model.capabilities import Ability, Capabilities
from cockpit.model.ids import JobId, NodeName
from cockpit.model.node import Node
from cockpit.model.reasons import NeverFits, Resource
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import JobSpec
from cockpit.model.view import NodeRow
from tests.doubles.samples import HOUR, NOW
from tests.headless.conftest import Desk


def submitted(desk: Desk) -> JobSpec:
    (spec,) = (each[1] for each in desk.backend.asked if each[0] == "submit")
    assert isinstance(spec, JobSpec)
    return spec


@pytest.mark.req("LA-70")
def test_a_job_file_that_mentions_another_system_stays_a_job_file(reading: Desk) -> None:
    job = b"{name: upload, command: gcloud storage cp model gs://bucket, output: /o}"
    assert reading("submit", "-", stdin=job).lines == ["submitted upload as 100"]
    assert submitted(reading).command == "gcloud storage cp model gs://bucket"


@pytest.mark.req("LA-70")
def test_a_plain_job_file_is_read_without_the_parsers_of_other_systems(
    reading: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(exchange, "taken_over")
    job = b"{name: upload, command: make, output: /o}"
    assert reading("submit", "-", stdin=job).lines == ["submitted upload as 100"]


@pytest.mark.req("LA-70")
def test_a_batch_script_begins_where_it_is_submitted_and_a_manifest_where_it_lies(
    reading: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(here)
    script = there / "x.sh"
    script.write_text("#!/bin/bash\n#SBATCH -J x\ntrue\n")
    assert reading("submit", str(script)).code == ExitCode.OK
    taken = submitted(reading).script
    assert taken is not None
    assert taken.work_dir == str(here)


@pytest.mark.req("LA-70")
def test_a_batch_script_gets_the_variables_of_the_shell_that_submits_it(
    reading: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEARNING_RATE", "0.1")
    reading("submit", "-", stdin=b"#!/bin/bash\n#SBATCH -J x -D /o\ntrue\n")
    assert submitted(reading).env["LEARNING_RATE"] == "0.1"


@pytest.mark.req("UI-41")
def test_paths_of_a_batch_script_that_are_not_there_are_named(reading: Desk, tmp_path: Path) -> None:
    reading.backend.capabilities = Capabilities({Ability.SCRIPTS: "It starts no scripts."})
    script = f"#!/bin/bash\n#SBATCH -J x -D {tmp_path}/gone -o {tmp_path}/logs/%j.out\ntrue\n"
    said = reading("submit", "-", stdin=script.encode()).err
    assert f"script.work_dir: {tmp_path}/gone is not there now" in said
    assert f"{tmp_path}/logs is not there now" in said
    (tmp_path / "gone").mkdir()
    (tmp_path / "logs").mkdir()
    assert "is not there now" not in reading("submit", "-", stdin=script.encode()).err


@pytest.mark.req("LA-70")
def test_the_remedy_is_named_also_where_the_script_got_a_free_name_first(
    reading: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Node(name=NodeName("n"), cpus=2, memory_mib=1024)
    reading.backend.node_rows = [NodeRow(node, 0, 0, 0, 0, (), ())] * 8
    too_large = Refusal(RefusalKind.INVALID, "", (("specs[0].cpus", NeverFits(Resource.CPUS, 16, 2, ())),))

    async def submit(specs: Sequence[JobSpec]) -> list[JobId]:
        is_taken = specs[0].name == "vit-sweep"
        raise RequestRefused(Refusal(RefusalKind.INVALID, "name: a job has this name") if is_taken else too_large)

    monkeypatch.setattr(reading.backend, "submit", submit)
    script = b"#!/bin/bash\n#SBATCH -J vit-sweep -D /o -n 16\nsrun ./a.out\n"
    done = reading("submit", "-", stdin=script)
    assert done.code == ExitCode.INVALID
    assert "add -N 8, or -N 8 --ntasks-per-node=2" in done.err
    assert done.err.splitlines()[-1] == "stdin: specs[0].cpus: asks for 16 CPUs on one node; the largest has 2"


@pytest.mark.req("LA-70")
def test_a_batch_script_begins_at_a_moment_counted_from_now(reading: Desk) -> None:
    reading("submit", "-", stdin=b"#!/bin/bash\n#SBATCH -J x -D /o --begin=now+1hour\ntrue\n")
    assert submitted(reading).begin_at == NOW + HOUR


@pytest.mark.req("LA-70")
def test_a_batch_script_has_the_words_behind_two_dashes_as_arguments(reading: Desk) -> None:
    words = ("--", "--lr", "0.1")
    reading("submit", "-", *words, stdin=b"#!/bin/bash\n#SBATCH -J x -D /o\ntrue\n")
    script = submitted(reading).script
    assert script is not None
    assert script.arguments == ("--lr", "0.1")
    refused = reading("submit", "-", *words, stdin=b"{name: a, command: b, output: /o}")
    assert refused.code == ExitCode.USAGE
    assert "only a batch script takes words behind --" in refused.err


@pytest.mark.req("LA-70")
def test_a_converted_script_has_no_variables_of_this_shell(reading: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEARNING_RATE", "0.1")
    script = b"#!/bin/bash\n#SBATCH -J x -D /o\ntrue\n"
    assert b"LEARNING_RATE" not in reading("convert", "-", "--to", "yaml", stdin=script).out


@pytest.mark.req("KU-11")
def test_a_dry_run_prints_the_objects_as_yaml_and_submits_nothing(
    reading: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def manifests(specs: Sequence[JobSpec]) -> list[dict[str, object]]:
        return [{"kind": kind, "metadata": {"name": spec.name}} for spec in specs for kind in ("Policy\x1b", "Job")]

    reading.backend.capabilities = Capabilities()
    monkeypatch.setattr(reading.backend, "manifests", manifests, raising=False)
    done = reading("submit", "--dry-run", "-", stdin=b"{name: train, command: make, output: /o}")
    assert done.code == ExitCode.OK
    first, second = done.out.decode().split("---\n")
    assert "\x1b" not in first
    assert second == "kind: Job\nmetadata:\n  name: train\n"
    assert not [each for each in reading.backend.asked if each[0] == "submit"]


def test_a_dry_run_is_refused_where_no_objects_are_made(desk: Desk) -> None:
    done = desk("submit", "--dry-run", "one.yaml")
    assert done.code == ExitCode.USAGE
    assert "Only a Kubernetes cluster makes objects of a job" in done.err
    assert not [each for each in desk.backend.asked if each[0] == "submit"]
