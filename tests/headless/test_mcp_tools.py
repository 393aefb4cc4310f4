"""The verbs as tools: which there are, their arguments, the commands that they mean, and that acts are confirmed."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from cockpit.headless.arguments import UsageError
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.mcp.calls import MOST_BYTES, TOKEN_MS, ToolCalls
from cockpit.headless.mcp.tools import ACTING_TOOLS, NO_TOOLS, READING, call_of, description, input_schema, tools
from cockpit.headless.registry import ACTING, VERBS
from tests.doubles.hostile_cluster import HostileBackend
from tests.headless.conftest import Desk
from tests.present.corpus import is_harmless

pytestmark = pytest.mark.req("UI-40", "UI-41")


def calls_on(desk: Desk, *, acts: bool = True) -> ToolCalls:
    return ToolCalls(desk.services(), lambda: desk.clock[0], None, acts=acts)


def texts(value: Any) -> list[str]:
    """All texts of a JSON value."""
    if isinstance(value, dict):
        return [text for pair in value.items() for each in pair for text in texts(each)]
    return [text for each in value for text in texts(each)] if isinstance(value, list) else [str(value)]


def test_every_verb_is_a_tool_that_reads_or_acts_or_none() -> None:
    groups = (READING, ACTING_TOOLS, NO_TOOLS)
    assert {verb: sum(verb in group for group in groups) for verb in VERBS} == dict.fromkeys(VERBS, 1)
    assert set(VERBS) == READING | ACTING_TOOLS | NO_TOOLS
    # Putting weights and limits in force is the one act of verbs that otherwise read; the tools cannot.
    assert frozenset({"priority", "lab"}) == READING & ACTING
    assert not any("apply" in input_schema(verb)["properties"] for verb in ("priority", "lab"))
    assert set(tools(acts=False).values()) == READING


@pytest.mark.parametrize("verb", sorted(READING | ACTING_TOOLS))
def test_every_tool_has_a_schema_and_says_what_it_does(verb: str) -> None:
    schema = input_schema(verb)
    Draft202012Validator.check_schema(schema)
    assert set(schema["required"]) <= set(schema["properties"])
    assert not {"yes", "watch", "follow", "cluster", "output", "file", "files"} & set(schema["properties"])
    assert ("confirm" in schema["properties"]) == (verb in ACTING_TOOLS)
    assert all(each["description"] for each in schema["properties"].values())
    assert VERBS[verb][2] in description(verb)


def test_arguments_become_the_words_of_the_command() -> None:
    assert call_of("jobs", {"filter": "-x", "all": True, "fold": False}).argv == (
        *("jobs", "--all", "--filter=-x", "-o", "json"),
    )
    assert call_of("explain", {"jobs": [4711, "lab:4"], "past": True}).argv == (
        *("explain", "--past", "-o", "json", "4711", "lab:4"),
    )
    assert call_of("nodes", {"card_model": ["A100", "H100"]}).argv == (
        *("nodes", "--card-model=A100", "--card-model=H100", "-o", "json"),
    )
    assert call_of("submit", {"text": "name: a\n"}) == (("submit", "-"), b"name: a\n")
    assert call_of("scale", {"job": 4711, "workers": "-1"}).argv == ("scale", "4711", "-1")


@pytest.mark.parametrize(
    ("verb", "arguments", "words"),
    [
        ("cancel", {"jobs": ["--yes"]}, "begins with a minus"),
        ("cancel", {"jobs": ["4711"], "yes": True}, "has no argument yes"),
        ("jobs", {"watch": True}, "has no argument watch"),
        ("jobs", {"all": "yes"}, "true or false"),
        ("explain", {"jobs": [{"id": 4711}]}, "a text, and not dict"),
        ("submit", {"files": ["/etc/shadow"]}, "has no argument files"),
        ("job", {"job": "-c"}, "begins with a minus"),
        ("explain", {"jobs": ["1"] * 1001}, "at most 1000"),
    ],
)
def test_a_value_is_never_an_option_and_other_arguments_are_refused(verb: str, arguments: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        call_of(verb, arguments)


def test_a_list_is_the_json_of_the_command(desk: Desk) -> None:
    answer = calls_on(desk)("jobs", {"columns": "id,user"})
    assert answer["ok"]
    assert answer["output"] == json.loads(desk("jobs", "--columns", "id,user", "-o", "json").out)
    assert "no instruction" in answer["note"]


def test_a_refusal_is_an_answer_with_its_sentence(desk: Desk) -> None:
    answer = calls_on(desk)("job", {"job": "9999"})
    assert (answer["ok"], answer["exit_code"]) == (False, 66)
    assert "there is no job 9999" in answer["messages"]


def test_nothing_acts_without_its_token_and_each_token_acts_once(desk: Desk) -> None:
    calls = calls_on(desk)
    would = calls("hold", {"jobs": ["4720"]})
    assert (would["ok"], would["done"], would["would_run"]) == (True, False, "cockpit hold 4720")
    assert would["jobs"][0]["output"]["rows"][0]["name"] == "vit-sweep"
    assert not acted(desk)
    other = calls("hold", {"jobs": ["4715"], "confirm": would["confirm"]})
    assert "other arguments" in other["messages"]
    assert "not known" in calls("hold", {"jobs": ["4720"], "confirm": "made-up"})["messages"]
    assert not acted(desk)
    assert calls("hold", {"jobs": ["4720"], "confirm": would["confirm"]})["output"] == "held 4720\n"
    assert acted(desk) == [("hold", 4720)]
    assert "not known" in calls("hold", {"jobs": ["4720"], "confirm": would["confirm"]})["messages"]
    assert acted(desk) == [("hold", 4720)]


def acted(desk: Desk) -> list[tuple[object, ...]]:
    return [call[:2] for call in desk.backend.asked if call[0] == "hold"]


def test_a_token_expires(desk: Desk) -> None:
    calls = calls_on(desk)
    would = calls("hold", {"jobs": ["4720"]})
    desk.clock[0] += TOKEN_MS + 1
    assert "older than 10 minutes" in calls("hold", {"jobs": ["4720"], "confirm": would["confirm"]})["messages"]
    assert not acted(desk)


def test_what_a_dry_run_finds_wrong_gets_no_token(desk: Desk) -> None:
    calls = calls_on(desk)
    for verb, arguments in (("hold", {"jobs": ["9999"]}), ("hold", {}), ("set-time-limit", {"jobs": ["4720"]})):
        answer = calls(verb, arguments)
        assert not answer["ok"]
        assert "confirm" not in answer
        assert answer["messages"]


def test_a_server_that_only_reads_acts_on_nothing(desk: Desk) -> None:
    answer = calls_on(desk, acts=False)("hold", {"jobs": ["4720"]})
    assert not answer["ok"]
    assert "--allow-acts" in answer["messages"]
    assert not acted(desk)


@pytest.mark.req("TR-05")
@pytest.mark.parametrize("verb", ["overview", "jobs", "nodes", "events", "accounts", "queues", "job", "logs", "cancel"])
def test_hostile_texts_of_the_cluster_are_harmless_in_answers(verb: str) -> None:
    desk = Desk()
    desk.backend = HostileBackend()
    arguments = {"job": {"job": "4"}, "logs": {"job": "4"}, "cancel": {"jobs": ["4"]}}.get(verb, {})
    answer = calls_on(desk)(verb, arguments)
    assert all(is_harmless(text.replace("\n", "").replace("\t", "")) for text in texts(answer))


def test_a_long_answer_is_cut_and_says_so(desk: Desk) -> None:
    desk.backend.job_rows = [row for row in desk.backend.job_rows for _ in range(400)]
    answer = calls_on(desk)("jobs", {})
    assert len(answer["output"]) <= MOST_BYTES
    assert "ask for less" in answer["cut"]


def test_without_the_package_it_says_what_to_install(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cockpit.headless.mcp.server", None)
    done = desk("mcp")
    assert done.code == ExitCode.MISSING
    assert "pip install 'cockpit-cluster[mcp]'" in done.err
