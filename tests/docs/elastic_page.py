"""The steps of docs/elastic.md for an elastic job on spot nodes, as its tests run them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from textwrap import dedent

PAGE = (Path(__file__).parents[2] / "docs/elastic.md").read_text()
_STEPS = PAGE.split("## An elastic job on spot nodes, step by step")[1].split("\n## ")[0]
BLOCKS = [dedent(block) for block in re.findall(r"^   ```\n(.*?)^   ```$", _STEPS, re.MULTILINE | re.DOTALL)]
(SUBMITTED,) = [block for block in BLOCKS if block.startswith("arena ")]
"""The command line of the guide."""
COMMANDS = [shlex.split(line)[1:] for block in BLOCKS for line in block.splitlines() if line.startswith("cockpit ")]
"""The arguments of each command, in their order."""
ON_KUBERNETES = [words[2:] for words in COMMANDS if words[:2] == ["-c", "prod"]]
ON_THE_ENGINE = [words for words in COMMANDS if words[:2] != ["-c", "prod"]]
