"""`python -m tests.real.kubernetes.answers --seed 1 --count 320`: the table of docs/kubernetes-answers.md."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from itertools import count
from pathlib import Path
from random import Random
from typing import TextIO

from tests.real.kubernetes.answers.situations import kinds, situation
from tests.real.kubernetes.answers.stage import BACKOFF_SECONDS, Stage
from tests.real.kubernetes.answers.trial import Finding, Question, Verdict, try_situation
from tests.real.kubernetes.cluster import ADMIN, RealKubernetes
from tests.real.kubernetes.conftest import running_cluster
from tests.real.kubernetes.test_backend import cockpit_of

MOST_EMPTY = 20
"""Situations of one kind in which no job waits, after which the next kind is tried."""


async def run(cluster: RealKubernetes, seed: int, wanted: int, log: TextIO, only: str) -> list[Finding]:
    """Try situations, the kinds in turn, until `wanted` have been tried in which a job waits."""
    stage, findings, tried = Stage(cluster), [], 0
    numbers = {kind: count() for kind in kinds() if only in kind}
    began = time.monotonic()
    async with cockpit_of(cluster, ADMIN, "default") as backend:
        while tried < wanted:
            for kind, numbered in numbers.items():
                for _ in range(MOST_EMPTY):
                    number = next(numbered)
                    made = situation(kind, seed, number)
                    found = await try_situation(stage, backend, made, Random(f"{seed}/{kind}/{number}/trial"))
                    if found:
                        break
                tried += bool(found)
                findings += found
                log.writelines(f"{each.verdict}\t{kind}\t{number}\t{each.question}\t{each.about}\n" for each in found)
                log.write(f"# {tried} {time.monotonic() - began:.0f} s\n")
                log.flush()
                if tried >= wanted:
                    break
    return findings


def table(findings: list[Finding]) -> str:
    """Return the numbers of answers by kind of situation and question, as a table in Markdown."""
    counts = Counter((each.kind, each.question, each.verdict) for each in findings)
    head = " | ".join(Question)
    lines = [f"| situation | {head} |", f"| --- |{' --- |' * len(Question)}"]
    lines += (
        f"| {kind} | {' | '.join(_cell(counts, kind, each) for each in Question)} |"
        for kind in dict.fromkeys(each.kind for each in findings)
    )
    whole = Counter[tuple[str, Question, Verdict]]()
    for (_, question, verdict), number in counts.items():
        whole["all", question, verdict] += number
    lines.append(f"| all | {' | '.join(_cell(whole, 'all', each) for each in Question)} |")
    return "\n".join(lines)


def _cell(counts: Counter[tuple[str, Question, Verdict]], kind: str, question: Question) -> str:
    numbers = [counts[kind, question, verdict] for verdict in Verdict]
    return " / ".join(map(str, numbers)) if any(numbers) else "-"


def main() -> None:
    parser = argparse.ArgumentParser(prog="answers", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=320, help="situations in which a job waits")
    parser.add_argument("--kind", default="", help="only kinds whose name contains this")
    parser.add_argument("--log", type=Path, help="where each answer is written, with what happened")
    args = parser.parse_args()
    with (
        running_cluster(nodes=0, backoff_seconds=BACKOFF_SECONDS) as cluster,
        args.log.open("w") if args.log else sys.stderr as log,
    ):
        findings = asyncio.run(run(cluster, args.seed, args.count, log, args.kind))
    sys.stdout.write(table(findings) + "\n")


main()
