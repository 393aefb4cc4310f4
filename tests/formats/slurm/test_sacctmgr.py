"""sacctmgr's names and values for settings of accounts."""

from __future__ import annotations

import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.slurm.sacctmgr import association_change, limit_words, qos_change, qos_words
from cockpit.model.accountchange import AssociationChange, LimitsChange, QosChange
from cockpit.model.accounts import Qos, ResourceLimits


@pytest.mark.req("SC-16")
def test_limits_by_sacctmgrs_names() -> None:
    words = [
        "MaxJobs=4",
        "grptres=CPU=16,Mem=64G,gres/gpu=2",
        "MaxWall=1-12:00:00",
        "MaxSubmit=9",
        "GrpTRESMins=cpu=100",
    ]
    assert association_change(words).limits == LimitsChange(
        max_jobs=4,
        grp_tres={"cpu": 16.0, "mem": 65536.0, "gres/gpu": 2.0},
        max_wall_seconds=129_600,
        max_submit=9,
        grp_tres_minutes={"cpu": 100.0},
    )


def test_minus_one_removes_a_limit() -> None:
    assert association_change(["MaxJobs=-1", "MaxWall=-1", "GrpTRES=cpu=-1", "DefaultQOS=-1", "Fairshare=-1"]) == (
        AssociationChange(
            default_qos="", shares=-1, limits=LimitsChange(max_jobs=-1, max_wall_seconds=-1, grp_tres={"cpu": -1.0})
        )
    )


def test_settings_of_an_association() -> None:
    words = ["Parent=vision", "shares=parent", "QOS=+high,-low", "Priority=7", "default=yes"]
    assert association_change(words) == AssociationChange(
        parent="vision", shares="parent", qos=("+high", "-low"), priority=7, default=True
    )
    assert association_change(["QOS+=high,gold"]).qos == ("+high", "+gold")
    assert association_change(["QOS-=high"]).qos == ("-high",)
    assert association_change(["QOS="]).qos == ()


def test_times_without_colons_are_minutes_but_grace_is_seconds() -> None:
    assert association_change(["MaxWall=90"]).limits.max_wall_seconds == 5400
    assert qos_change(["GraceTime=90"]).grace_seconds == 90
    assert qos_change(["PreemptExemptTime=90"]).exempt_seconds == 5400
    assert qos_words(Qos(name="low", exempt_seconds=90)) == ("PreemptExemptTime=00:01:30",)


def test_settings_of_a_qos() -> None:
    words = ["Priority=100", "MaxTRESPerUser=gres/gpu=8", "UsageFactor=0.5", "Preempt=normal", "Flags=DenyOnLimit"]
    assert qos_change(words) == QosChange(
        priority=100, max_tres_per_user={"gres/gpu": 8.0}, usage_factor=0.5, preempt=("normal",), flags=("DenyOnLimit",)
    )


def test_all_errors_at_once() -> None:
    with pytest.raises(SpecErrors) as caught:
        association_change(
            ["MaxJobs", "Color=red", "MaxJobs=many", "GrpTRES=disk=1", "MaxWall=x", "Default=no", "GrpTRES="]
        )
    assert [error.partition(":")[0] for error in caught.value.errors] == [
        "MaxJobs",
        "Color=red",
        "MaxJobs",
        "GrpTRES",
        "MaxWall",
        "Default",
        "GrpTRES",
    ]


def test_a_setting_given_twice_is_refused() -> None:
    with pytest.raises(SpecErrors, match="MaxSubmitJobs: is there twice; keep one"):
        association_change(["MaxSubmit=1", "MaxSubmitJobs=2"])


def test_limits_are_shown_by_the_same_names() -> None:
    limits = ResourceLimits(max_wall_seconds=86_400, grp_tres={"cpu": 16.0, "mem": 65536.0}, max_jobs=0)
    assert limit_words(limits) == ("MaxWall=1-00:00:00", "MaxJobs=0", "GrpTRES=cpu=16,mem=64G")
    assert association_change(limit_words(limits)).limits == LimitsChange(
        max_wall_seconds=86_400, grp_tres={"cpu": 16.0, "mem": 65536.0}, max_jobs=0
    )
    qos = Qos(name="high", priority=5, usage_factor=2.0, preempt=("a", "b"), limits=ResourceLimits(grp_jobs=3))
    assert qos_words(qos) == ("UsageFactor=2.0", "Preempt=a,b", "GrpJobs=3")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("GrpTRES=disk=1", 'GrpTRES: "disk" is no resource that is counted here'),
        ("GrpTRES=", "GrpTRES: is empty; write cpu=16,mem=64G"),
    ],
)
def test_what_is_wrong_with_resources_is_said(setting: str, said: str) -> None:
    with pytest.raises(SpecErrors) as caught:
        association_change([setting])
    assert caught.value.errors[0].startswith(said)
