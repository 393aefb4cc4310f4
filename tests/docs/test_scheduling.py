"""docs/scheduling.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cockpit.present.reasons import REASON_TYPES
from tests.present.test_reasons import SENTENCES
from tests.present.test_rule_reasons import SENTENCES as RULE_SENTENCES

PAGE = (Path(__file__).parents[2] / "docs/scheduling.md").read_text()
WHY = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*) \|$", PAGE.split("## Why does my job wait?")[1], re.MULTILINE)


@pytest.mark.req("SC-13")
def test_every_reason_is_explained_by_a_sentence_that_is_said() -> None:
    assert sorted(kind for kind, _, _ in WHY) == sorted(REASON_TYPES)
    said = {(str(reason.__struct_config__.tag), sentence) for reason, sentence in [*SENTENCES, *RULE_SENTENCES]}
    assert {(kind, sentence) for kind, sentence, _ in WHY} - said == set()
