"""Options of sbatch on the command line of `cockpit submit`."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from cockpit.backends.slurm.backend import CAPABILITIES as SLURM
from cockpit.headless.arguments import UsageError
from cockpit.headless.sbatch_words import split_sbatch_options
from cockpit.model.capabilities import EMBEDDED
from cockpit.model.directives import SubmitScript
from tests.headless.conftest import Desk

pytestmark = pytest.mark.req("SL-20", "LA-70")


@pytest.fixture
def slurm(reading: Desk) -> Desk:
    reading.backend.capabilities = SLURM
    return reading


def split(line: str) -> tuple[str, str]:
    own, options = split_sbatch_options(shlex.split(line))
    return shlex.join(own), shlex.join(options)


@pytest.mark.parametrize(
    ("typed", "own", "options"),
    [
        ("-A nlp -p gpu -n 4 --wrap true", "--wrap true", "--account=nlp --partition=gpu --ntasks=4"),
        ("--wrap true --gres=gpu:2 -t 10", "--wrap true", "--gres=gpu:2 --time=10"),
        ("--gres gpu:2 --exclusive x.sh", "x.sh", "--gres=gpu:2 --exclusive"),
        ("-n4 -J=x -t10 x.sh", "x.sh", "--ntasks=4 --job-name=x --time=10"),
        ("-Hn 4 -sk x.sh", "--hold x.sh", "--ntasks=4 --oversubscribe=k"),
        ("-sn4 -Is x.sh", "-Is x.sh", "--oversubscribe=n4"),
        ("-OQ x.sh", "x.sh", "--overcommit --quiet"),
        ("-d afterok:7 --dep=singleton --hol x.sh", "--dependency=afterok:7 --dependency=singleton --hold x.sh", ""),
        ("--part=gpu --tasks-per-node 2 -", "-", "--partition=gpu --ntasks-per-node=2"),
        ("-c 4 -c8 x.sh", "x.sh", "--cpus-per-task=4 --cpus-per-task=8"),
        ("-c lab --cluster 4 x.sh", "-c lab --cluster 4 x.sh", ""),
        ("--container-mounts=/a:/b --bogus x.sh", "--bogus x.sh", "--container-mounts=/a:/b"),
        ("--request-id -p --show-commands x.sh", "--request-id -p --show-commands x.sh", ""),
        ("--wrap=-n a.sh b.sh", "--wrap=-n a.sh b.sh", ""),
    ],
)
def test_options_of_sbatch_are_recognised_as_users_type_them(typed: str, own: str, options: str) -> None:
    assert split(typed) == (own, options)


@pytest.mark.parametrize("typed", ["x.sh -p gpu", "x.sh --mem=4", "-p", "--test-only x.sh", "-W x.sh", "-M a x.sh"])
def test_an_option_that_sbatch_would_take_otherwise_is_refused(typed: str) -> None:
    with pytest.raises(UsageError):
        split(typed)


def test_a_script_and_a_command_are_submitted_with_them(slurm: Desk, tmp_path: Path) -> None:
    assert slurm("submit", "--wrap", "make", "-A", "nlp", "-t", "10", "-H").lines == ["submitted make as 4800"]
    wrapped = SubmitScript("", ("--account=nlp", "--time=10", "--hold"), wrap="make")
    assert slurm.backend.asked[-1] == ("direct", wrapped)
    file = tmp_path / "job.sh"
    file.write_text("#!/bin/sh\ntrue\n")
    slurm("submit", "-p", "gpu", str(file), "--", "-p", "x")
    expected = SubmitScript("#!/bin/sh\ntrue\n", ("--partition=gpu",), str(file), ("-p", "x"))
    assert slurm.backend.asked[-1] == ("direct", expected)


def test_options_behind_the_script_are_refused_with_both_ways_to_write_them(slurm: Desk) -> None:
    done = slurm("submit", "job.sh", "-p", "gpu")
    assert done.code == 64
    assert "cockpit submit -p … job.sh -- ARGUMENTS" in done.err


def test_a_job_file_takes_no_option_of_sbatch(slurm: Desk) -> None:
    done = slurm("submit", "-p", "gpu", "-", stdin=b"{name: train, command: 'true', output: /o}")
    assert done.code != 0
    assert "write what --partition=gpu says into the job file" in done.err


def test_on_other_clusters_they_become_fields_of_the_job(slurm: Desk) -> None:
    slurm.backend.capabilities = EMBEDDED
    text = b"#!/bin/sh\n#SBATCH -J mine -c 2\ntrue\n"
    slurm("submit", "-c", "4", "-t", "10", "-", stdin=text)
    spec = slurm.backend.asked[-1][1]
    assert (spec.name, spec.specs[0].cpus, spec.time_limit_seconds) == ("mine", 4, 600)
    slurm("submit", "-J", "wrapped", "--wrap", "true")
    assert slurm.backend.asked[-1][1].name == "wrapped"
