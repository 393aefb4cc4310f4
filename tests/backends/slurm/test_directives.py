"""What only Slurm does: one command each, in which a person's words are one argument."""

from __future__ import annotations

import shlex

import pytest

from cockpit.backends.slurm.mapping.acts import NotPossible
from cockpit.backends.slurm.mapping.directives import command
from cockpit.model.directives import Directive, MoveToTop, SendSignal, SignalTarget, SubmitScript, UpdateJob


@pytest.mark.req("SL-20", "TR-06")
@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        (SendSignal(7, "USR1"), "scancel --full --signal=USR1 7"),
        (SendSignal(7, "sigint", SignalTarget.SCRIPT), "scancel --batch --signal=INT 7"),
        (SendSignal(46, "10", SignalTarget.STEPS, 3), "scancel --signal=10 46_3"),
        (MoveToTop(("7", "46_3")), "scontrol top 7,46_3"),
        (
            UpdateJob(46, {"Features": "a|b", "Comment": "x; $(id) y"}, 3),
            "scontrol update JobId=46_3 'Features=a|b' 'Comment=x; $(id) y'",
        ),
        (SubmitScript("#!/bin/sh\n", ("--hold",)), "sbatch --parsable --hold"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_each_is_one_command(wanted: Directive, line: str) -> None:
    assert shlex.join(command(wanted).argv) == line


@pytest.mark.req("SL-20")
def test_a_script_is_submitted_by_its_name_where_sbatch_sees_it() -> None:
    plain = SubmitScript("#!/bin/sh\ntrue\n", ("--hold",), "sub/x.sbatch", ("-a", "two words"))
    assert command(plain, on_this_disk=True) == (
        ("sbatch", "--parsable", "--hold", "sub/x.sbatch", "-a", "two words"),
        "",
    )
    elsewhere = command(plain)
    assert elsewhere.argv == (
        *("sbatch", "--parsable", "--hold", "--job-name=x.sbatch"),
        *("/dev/stdin", "-a", "two words"),
    )
    assert elsewhere.stdin == plain.script
    named = SubmitScript("#!/bin/sh\n#SBATCH -J own\ntrue\n", file="x.sbatch")
    assert command(named).argv == ("sbatch", "--parsable")
    typed = SubmitScript("#!/bin/sh\ntrue\n", ("--job-name=mine",), "x.sbatch")
    assert command(typed).argv == ("sbatch", "--parsable", "--job-name=mine")
    odd = SubmitScript("#!/bin/sh\n", file="-x.sh")
    assert command(odd, on_this_disk=True).argv == ("sbatch", "--parsable", "./-x.sh")
    assert command(SubmitScript("", wrap="echo 'a b'; -x")).argv == ("sbatch", "--parsable", "--wrap=echo 'a b'; -x")


def test_a_script_is_submitted_unchanged() -> None:
    assert command(SubmitScript("#!/bin/sh\n#SBATCH -n 1\ntrue\n")).stdin == "#!/bin/sh\n#SBATCH -n 1\ntrue\n"


@pytest.mark.req("TR-06")
@pytest.mark.parametrize(
    "wanted",
    [
        SendSignal(7, "--all"),
        SendSignal(7, "USR1 8"),
        UpdateJob(7, {"JobId": "8"}),
        UpdateJob(7, {"a=b": "8"}),
        UpdateJob(7, {"--x": ""}),
    ],
)
def test_no_other_option_can_be_injected(wanted: Directive) -> None:
    with pytest.raises(NotPossible):
        command(wanted)
