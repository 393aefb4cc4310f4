"""Values that files seldom hold: dates with a month's name, wrong kinds, settings of accounts as commands."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.formats.slurm.begin import begin_moment
from cockpit.formats.slurm.sacctmgr import change_words
from cockpit.formats.traces.swf import machine
from cockpit.formats.typed_values import limit_text, read_limit
from cockpit.model.accountchange import AssociationChange, LimitsChange, QosChange
from cockpit.model.asking import WantedLimit

NOW = datetime(2026, 3, 9, 14, 5, tzinfo=ZoneInfo("UTC"))


@pytest.mark.req("LA-71")
@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("dec 24", "2026-12-24T00:00"),
        ("16:00 december 24", "2026-12-24T16:00"),
        ("mar 9", "2026-03-09T00:00"),
        ("jan 5", "2027-01-05T00:00"),
    ],
)
def test_a_day_may_be_named_by_its_month(text: str, moment: str) -> None:
    assert begin_moment(text, NOW).isoformat()[:16] == moment


@pytest.mark.req("UI-09")
def test_a_change_of_an_account_is_the_words_of_sacctmgr() -> None:
    limits = LimitsChange(max_jobs=4, max_wall_seconds=3600)
    association = AssociationChange(shares=60, qos=("+high", "-low"), limits=limits)
    assert set(change_words(association)) == {"Fairshare=60", "QOS+=high", "QOS-=low", "MaxJobs=4", "MaxWall=01:00:00"}
    assert change_words(AssociationChange()) == ()
    assert any(word.endswith("=7") for word in change_words(QosChange(priority=7)))


@pytest.mark.req("JT-20")
@pytest.mark.parametrize("text", ["1:00:00", "+30:00", "-1-00:00:00"])
def test_a_time_limit_is_written_as_it_is_read(text: str) -> None:
    wanted = read_limit(text)
    assert wanted is not None
    assert read_limit(limit_text(wanted)) == wanted
    assert limit_text(WantedLimit(60, beside=False))[0] not in "+-"


@pytest.mark.req("LA-50")
@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ("[1]", "write lists of values by name"),
        ("{lr: 1}", "write a list of values"),
        ("{lr: [[1]]}", "list of values"),
    ],
)
def test_parameters_of_another_kind_are_refused_with_the_form_to_write(parameters: str, told: str) -> None:
    text = f"name: x\ncommand: 'true'\noutput: ./o\nspecs: [{{cpus: 1}}]\nsweep: {{parameters: {parameters}}}\n"
    with pytest.raises(SpecErrors, match=told):
        read_jobs("x.yaml", text, "/home/ann", defaults=Defaults())


@pytest.mark.req("LA-50")
def test_truth_values_of_a_sweep_are_written_in_lower_case() -> None:
    text = "name: x\ncommand: 'true'\noutput: ./o\nspecs: [{cpus: 1}]\nsweep: {parameters: {amp: [true, 0.5, a]}}\n"
    (spec,) = read_jobs("x.yaml", text, "/home/ann", defaults=Defaults())
    assert spec.sweep is not None
    assert spec.sweep.parameters == {"amp": ("true", "0.5", "a")}


def test_the_machine_of_a_log_has_all_its_processors() -> None:
    assert machine(64).cpus == 64
