"""Keeps the state column of docs/requirements.md honest against the outcomes of the last test run.

    planned   no test proves any of it
    partly    something of it is proved
    done      all of it is proved, as a person judged who read the requirement and its tests

An id is proved when at least one test that carries it passed and none failed. The tool turns `planned` into `partly`
where there is proof; `done` is written by hand; and it fails where `partly` or `done` has no proof.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

TABLE = Path("docs/requirements.md")
OUTCOMES = Path(".requirements.json")
ROW = re.compile(r"^\| (?P<id>[A-Z]{2}-\d\d) \| (?P<text>.+) \| (?P<state>planned|partly|done) \|$", re.MULTILINE)


def proved(outcomes: dict[str, dict[str, str]]) -> set[str]:
    """Ids with a passed test and no failed one."""
    return {
        requirement
        for requirement, tests in outcomes.items()
        if "passed" in tests.values() and "failed" not in tests.values()
    }


def updated(table: str, proven: set[str]) -> tuple[str, list[str]]:
    """The table with its states brought up to date, and the ids that claim more than tests prove."""
    overclaimed = []

    def row(match: re.Match[str]) -> str:
        requirement, text, state = match["id"], match["text"], match["state"]
        if requirement not in proven and state != "planned":
            overclaimed.append(requirement)
        elif requirement in proven and state == "planned":
            state = "partly"
        return f"| {requirement} | {text} | {state} |"

    return ROW.sub(row, table), overclaimed


def summary(table: str) -> str:
    """One line per area: how many of its requirements are in which state."""
    counts: dict[str, Counter[str]] = {}
    for match in ROW.finditer(table):
        counts.setdefault(match["id"][:2], Counter())[match["state"]] += 1
    lines = [
        f"{area}  {count['done']:3} done  {count['partly']:3} partly  {count['planned']:3} planned"
        for area, count in counts.items()
    ]
    return "\n".join(lines)


def main() -> int:
    outcomes = json.loads(OUTCOMES.read_text())
    table, overclaimed = updated(TABLE.read_text(), proved(outcomes))
    TABLE.write_text(table)
    print(summary(table))
    for requirement in overclaimed:
        print(f"{requirement} claims more than `planned`, but no passed test proves it", file=sys.stderr)
    return 1 if overclaimed else 0


if __name__ == "__main__":
    sys.exit(main())
