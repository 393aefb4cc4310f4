from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from cockpit.headless.exitcodes import ExitCode
from cockpit.model import accountchange as change
from tests.doubles.account_tree import account_tree
from tests.headless.conftest import Desk

SETTINGS = change.AssociationChange


@pytest.fixture
def desk() -> Desk:
    somebody = Desk()
    somebody.backend.tree = account_tree()
    return somebody


@pytest.mark.req("SC-16")
def test_accounts_are_printed_as_a_tree(desk: Desk) -> None:
    title, root, vision, alice = desk("accounts", "--columns", "account,user,shares,used,limits,qos").lines
    assert title.split() == ["ACCOUNT", "USER", "SHARES", "USED", "LIMITS", "QOS"]
    assert root.startswith("root ")
    assert vision.startswith("  vision ")
    assert "MaxJobs=4" in vision
    assert alice.startswith("    vision  alice  parent")
    assert alice.endswith("normal, high")


@pytest.mark.req("SC-16", "SL-13")
def test_what_accounting_cannot_say_is_on_stderr_and_only_then(desk: Desk) -> None:
    complete = desk("accounts")
    assert (complete.code, complete.err) == (ExitCode.OK, "")
    desk.backend.tree = replace(desk.backend.tree, missing="sshare prints nothing here.")
    done = desk("accounts")
    assert (done.code, done.out) == (ExitCode.OK, complete.out)
    assert done.err == "sshare prints nothing here.\n"


def test_accounts_are_printed_for_programs(desk: Desk) -> None:
    rows = json.loads(desk("accounts", "-o", "json", "--filter", "user:alice").out)["rows"]
    assert [(row["account"], row["user"], row["shares"], row["used"]) for row in rows] == [
        ("vision", "alice", "parent", 13)
    ]
    assert "100  GrpJobs=3" in desk("accounts", "qos").lines[2]


@pytest.mark.req("SC-16")
@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (
            "add vision --parent research --shares 60 GrpTRES=cpu=4",
            change.AddAccount(
                "vision", SETTINGS(parent="research", shares=60, limits=change.LimitsChange(grp_tres={"cpu": 4.0}))
            ),
        ),
        ("modify vision MaxJobs=-1", change.ModifyAccount("vision", SETTINGS(limits=change.LimitsChange(max_jobs=-1)))),
        ("remove vision", change.RemoveAccount("vision")),
        ("add-user alice --account vision --partition a4", change.AddUser("alice", "vision", "a4")),
        (
            "add-user alice --account vision --shares parent --default-qos high --qos normal,high --default",
            change.AddUser(
                "alice",
                "vision",
                change=SETTINGS(shares="parent", default_qos="high", qos=("normal", "high"), default=True),
            ),
        ),
        ("modify-user alice --qos -high", change.ModifyUser("alice", SETTINGS(qos=("-high",)))),
        ("modify-user alice --account vision --priority 5", change.ModifyUser("alice", SETTINGS(priority=5), "vision")),
        ("remove-user alice --account vision", change.RemoveUser("alice", "vision")),
        (
            "add-qos high --priority 100 MaxTRESPerUser=gres/gpu=8",
            change.AddQos("high", change.QosChange(priority=100, max_tres_per_user={"gres/gpu": 8.0})),
        ),
        ("modify-qos high UsageFactor=2", change.ModifyQos("high", change.QosChange(usage_factor=2.0))),
        ("remove-qos high", change.RemoveQos("high")),
        ("add-coordinator vision carol dave", change.AddCoordinators("vision", ("carol", "dave"))),
        ("remove-coordinator vision carol", change.RemoveCoordinators("vision", ("carol",))),
    ],
)
def test_each_verb_requests_one_change(desk: Desk, words: str, asked: change.AccountChange) -> None:
    done = desk("accounts", *words.split())
    assert (done.code, done.err) == (ExitCode.OK, "")
    verb, name, *_ = words.split()
    done_word = {"add": "added", "modify": "changed", "remove": "removed"}[verb.partition("-")[0]]
    assert done.lines[0].startswith(done_word)
    assert done.lines[0].endswith(f" {name}")
    assert desk.backend.asked == [("change_accounts", asked)]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("modify vision", ExitCode.USAGE, "say what is to change"),
        ("add-user alice", ExitCode.USAGE, "--account"),
        ("modify vision MaxJobs=x Colour=2", ExitCode.INVALID, "Colour=2: is no setting here"),
        ("modify vision MaxJobs=-7", ExitCode.INVALID, '"-7" is not a whole number from 0 on; -1 removes the limit'),
        (f"modify vision MaxJobs={'9' * 30}", ExitCode.INVALID, "MaxJobs: has 30 digits; no bound has more than 16"),
        ("add", ExitCode.USAGE, "the following arguments are required: ACCOUNT\n"),
        ("add-coordinator vision", ExitCode.USAGE, "USER"),
    ],
)
def test_an_invalid_account_command_is_reported_and_not_sent(
    desk: Desk, words: str, code: ExitCode, message: str
) -> None:
    done = desk("accounts", *words.split())
    assert done.code == code
    assert message in done.err
    assert desk.backend.asked == []


@pytest.mark.req("SC-16")
@pytest.mark.parametrize(("verb", "everywhere"), [("add-user", False), ("modify-user", True), ("remove-user", True)])
def test_help_explains_users_without_an_account(desk: Desk, verb: str, everywhere: bool) -> None:
    words = " ".join(desk("accounts", verb, "--help").out.decode().split())
    assert "in this account" in words
    assert ("without it, wherever the user is" in words) == everywhere


@pytest.mark.req("SC-16")
def test_a_user_is_removed_without_settings(desk: Desk) -> None:
    done = desk("accounts", "remove-user", "bob", "MaxJobs=4")
    assert (done.code, desk.backend.asked) == (ExitCode.USAGE, [])
