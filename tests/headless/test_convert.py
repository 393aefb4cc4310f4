from __future__ import annotations

import json

import pytest

from tests.headless.conftest import Desk

SCRIPT = b"#!/bin/bash\n#SBATCH --job-name=a --mail-type=ALL\n#SBATCH -c 4\npython t.py\n"


@pytest.mark.req("LA-70")
def test_submit_converts_known_options_and_reports_the_omitted_ones(reading: Desk) -> None:
    done = reading("submit", "-", stdin=SCRIPT)
    assert done.code == 0
    assert "stdin: --mail-type: has no counterpart here; left out\n" in done.err
    _, spec = reading.backend.asked[-1]
    assert (spec.name, spec.command, spec.specs[0].cpus) == ("a", "python t.py", 4)


@pytest.mark.req("LA-70")
def test_convert_writes_other_formats(reading: Desk) -> None:
    manifest = reading("convert", "-", "--to", "pytorchjob", stdin=SCRIPT)
    assert manifest.out.startswith(b"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\n")
    custom = json.loads(reading("convert", "-", "--to", "customjob", stdin=SCRIPT).out)
    assert custom["jobSpec"]["workerPoolSpecs"][0]["machineSpec"] == {"machineType": "custom-4-1024"}
    assert b"#SBATCH --job-name=a\n" in reading("convert", "-", "--to", "sbatch", stdin=SCRIPT).out


@pytest.mark.req("LA-70")
def test_convert_reports_what_a_format_cannot_express(reading: Desk) -> None:
    job = b"name: a\ncommand: b\noutput: /a\nterminal: true\naccess: ro\n"
    assert "sbatch cannot say all of: terminal, access\n" in reading("convert", "-", "--to", "sbatch", stdin=job).err


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    "form",
    ["pytorchjob", "tfjob", "mpijob", "trainjob", "trainingjob", "job", "volcanojob", "arena", "gcloud"],
)
def test_submit_accepts_the_output_of_convert(reading: Desk, form: str) -> None:
    printed = reading("convert", "-", "--to", form, stdin=SCRIPT).out
    done = reading("submit", "-", stdin=printed)
    assert done.code == 0, done.err
    _, spec = reading.backend.asked[-1]
    assert spec.name == "a"
    assert "t.py" in spec.command


@pytest.mark.req("LA-70")
def test_arenas_options_may_stand_before_its_verb(reading: Desk) -> None:
    done = reading("submit", "-", stdin=b"arena --loglevel info submit pytorchjob --name=a 'python t.py'")
    assert done.code == 0, done.err
    assert reading.backend.asked[-1][1].command == "python t.py"
