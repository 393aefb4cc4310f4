"""docs/elastic.md lists each function of `cockpit.elastic` and each variable of an elastic worker."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from cockpit import elastic
from cockpit.headless.arguments import parse
from cockpit.launch.plan import _elastic_environment
from cockpit.model.ids import JobId, ReplicaId
from cockpit.model.resilience import Elastic
from tests.builders import a_spec
from tests.docs.elastic_page import COMMANDS, ON_KUBERNETES, ON_THE_ENGINE, SUBMITTED
from tests.formats.foreign.test_taking_over import ETJOB

PAGE = (Path(__file__).parents[2] / "docs/elastic.md").read_text()


@pytest.mark.req("EL-03")
def test_every_function_of_the_helper_is_listed_with_its_arguments() -> None:
    public = {name: each for name, each in vars(elastic).items() if inspect.isfunction(each) and name[0] != "_"}
    own = {name: each for name, each in public.items() if each.__module__ == elastic.__name__}
    own |= {"save": elastic.save}
    arguments = {name: ", ".join(inspect.signature(each).parameters) for name, each in own.items()}
    arguments["init"] = ""  # its path is for tests
    assert {f"{name}({each})" for name, each in arguments.items()} == set(
        re.findall(r"^\| `(\w+\(.*?\))`", PAGE, re.MULTILINE)
    )


@pytest.mark.req("EL-03")
def test_every_variable_of_an_elastic_worker_is_listed() -> None:
    env = _elastic_environment(a_spec(elastic=Elastic(workers=2, max_workers=4)), ReplicaId(JobId(1), 1, 0))
    assert env.keys() <= set(re.findall(r"`(COCKPIT_\w+)`", PAGE))


@pytest.mark.req("KU-10", "EL-08")
def test_the_steps_of_a_spot_job_are_commands_and_begin_with_the_guides_own() -> None:
    assert SUBMITTED == ETJOB
    assert len(ON_KUBERNETES) > len(ON_THE_ENGINE) > 3
    for words in COMMANDS:
        parse(words)
    named = set(re.findall(r"`(cockpit -c prod [^`]+)`", PAGE))
    assert [parse(each.split()[1:]) for each in sorted(named)]
