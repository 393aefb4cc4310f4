"""One situation: what cockpit says about the jobs that wait, and whether it comes true on the real scheduler.

1. Ask for the reason, what would help, and the start of every job that waits.
2. Compare the numbers of nodes by cause with those of the scheduler's message.
3. Carry out changes that cockpit says would help, and some that it does not name, one at a time, on the youngest job.
4. End the running jobs in the order of their deadlines, and note after which of them each job starts; or, where cockpit
   says that a higher priority evicts others, carry that out.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing
from enum import StrEnum
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from cockpit.model.pod_reasons import NodesExcluded, Obstacle, Unschedulable
from tests.real.kubernetes.answers.manifests import Wish, wishes, with_wish

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.backend import KubernetesBackend
    from cockpit.model.forecast import Outlook
    from cockpit.model.ids import JobId, Millis
    from cockpit.model.jobrow import JobRow
    from tests.real.kubernetes.answers.situations import Situation
    from tests.real.kubernetes.answers.stage import Stage

MOST_HELPING, MOST_OTHERS = 3, 2
"""Changes of each sort that are carried out in one situation."""
LONGEST = 60.0
_LIKE_SELECTORS = {Obstacle.AFFINITY: Obstacle.SELECTOR}
"""The scheduler's message has one cause for both."""


class Question(StrEnum):
    """What cockpit was asked."""

    REASON = "reason"
    HELPS = "helps"
    EVICTS = "evicts"
    """How many pods a higher priority class evicts. Which of equal pods the scheduler takes is told by no object."""
    HELPS_NOT = "does not help"
    START = "start"
    NO_START = "no start"


class Verdict(StrEnum):
    """What became of an answer."""

    CORRECT = "correct"
    WRONG = "wrong"
    NONE = "no answer"


class Finding(NamedTuple):
    """One answer and what became of it."""

    kind: str
    question: Question
    verdict: Verdict
    about: str
    """The job or change, and what happened instead of what cockpit said."""


async def try_situation(stage: Stage, backend: KubernetesBackend, made: Situation, random: Random) -> list[Finding]:
    """Return what became of cockpit's answers; empty: no job waits in this situation."""
    await asyncio.to_thread(stage.clear)
    await _until(backend, lambda rows: not rows)
    await asyncio.to_thread(stage.set, made)
    names = [each["metadata"]["name"] for each in made.waiting]
    waits = [name for name in names if not await asyncio.to_thread(stage.is_placed, name)]
    if not waits:
        return []
    rows = await _until(backend, lambda rows: all(name in rows and _is_judged(rows[name]) for name in waits))
    trial = _Trial(stage, made, random, {rows[name].id: name for name in rows})
    outlooks = {name: await backend.explain(rows[name].id) for name in waits}  # step 1
    return await asyncio.to_thread(lambda: list(trial.findings(outlooks)))


def _is_judged(row: JobRow) -> bool:
    return isinstance(row.reason, Unschedulable)


async def _until(backend: KubernetesBackend, holds: object) -> dict[str, JobRow]:
    """Wait until cockpit sees the jobs so, and return the rows by name."""
    assert callable(holds)
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs(anything=True)) as watch:
        async for _ in watch:
            rows = {row.name: row for row in await backend.jobs()}
            if holds(rows):
                return rows
    raise AssertionError("a watch never ends")


class _Trial:
    def __init__(self, stage: Stage, made: Situation, random: Random, names: dict[JobId, str]) -> None:
        self._stage, self._made, self._random, self._names = stage, made, random, names

    def findings(self, outlooks: dict[str, Outlook]) -> Iterator[Finding]:
        for name, outlook in outlooks.items():
            yield self._reason(name, outlook)  # step 2
        youngest = list(outlooks)[-1]
        if youngest == self._made.waiting[-1]["metadata"]["name"]:
            yield from self._changes(youngest, outlooks[youngest])  # step 3
            evicting = [each for each in outlooks[youngest].what_ifs if each.evicts]
            if evicting and self._random.random() < 0.5:  # step 4
                found = evicting[0]
                yield from self._eviction(youngest, Wish(found.change, found.before, found.after), found.evicts)
                return
        yield from self._starts(outlooks)

    def _reason(self, name: str, outlook: Outlook) -> Finding:
        from cockpit.backends.kubernetes.mapping.waiting import unschedulable

        message = self._stage.message(name)
        said = unschedulable(message, 1, 1)
        reason = outlook.explanation.reason if outlook.explanation is not None else None
        if isinstance(reason, Unschedulable) and reason.claims:
            right = reason.claims[0].claim in message or "unbound" in message
            return self._found(Question.REASON, right, f"{name}: {message} | {reason.claims}")
        if not isinstance(reason, Unschedulable) or reason.by_nodes is None:
            return self._finding(Question.REASON, Verdict.NONE, name)
        own, theirs = _counted(reason.by_nodes.excluded), _counted(said.excluded)
        right = own == theirs and reason.by_nodes.nodes == said.nodes and not reason.by_nodes.fitting
        return self._found(Question.REASON, right, f"{name}: {message} | {reason.by_nodes}")

    def _changes(self, name: str, outlook: Outlook) -> Iterator[Finding]:
        """Carry out changes of the youngest job, and put it back as it was."""
        manifest = self._made.waiting[-1]
        listed = [each for each in outlook.what_ifs if each.forecast.now and not each.evicts]
        helping = [Wish(each.change, each.before, each.after) for each in listed]
        named = {(each.change, each.before, each.after) for each in outlook.what_ifs}
        taints = sorted({_taint_text(each) for node in self._made.nodes for each in node.taints})
        others = [each for each in wishes(manifest, iter(taints)) if (*each,) not in named]
        # Of changes of one thing only the smallest that helps is named, so that another one may help, too.
        things = {(each.change, each.before) for each in outlook.what_ifs}
        others = [each for each in others if (each.change, each.before) not in things]
        for wish in self._random.sample(helping, min(MOST_HELPING, len(helping))):
            placed = self._carry_out(name, wish)
            yield self._found(Question.HELPS, placed, f"{name}: {wish} placed={placed}")
        for wish in self._random.sample(others, min(MOST_OTHERS, len(others))):
            placed = self._carry_out(name, wish)
            yield self._found(Question.HELPS_NOT, not placed, f"{name}: {wish} placed={placed}")

    def _carry_out(self, name: str, wish: Wish) -> bool:
        """Return whether the changed job is placed at once; afterwards the job waits as before."""
        manifest = self._made.waiting[-1]
        self._stage.withdraw(manifest)
        changed = with_wish(manifest, wish)
        self._stage.submit(changed)
        placed = self._stage.is_placed(name)
        self._stage.withdraw(changed)
        self._stage.submit(manifest)
        return placed

    def _eviction(self, name: str, wish: Wish, victims: int) -> Iterator[Finding]:
        """Carry out a change for which pods are evicted."""
        self._stage.withdraw(self._made.waiting[-1])
        before = {each["metadata"]["uid"] for each in self._stage.pods()}
        self._stage.submit(with_wish(self._made.waiting[-1], wish))
        placed = self._stage.is_placed(name)
        gone = len(before - {each["metadata"]["uid"] for each in self._stage.pods()})
        about = f"{name}: {wish} placed={placed}, evicted {gone} instead of {victims}"
        yield self._found(Question.HELPS, placed and gone, about)
        yield self._found(Question.EVICTS, gone == victims, about)

    def _starts(self, outlooks: dict[str, Outlook]) -> Iterator[Finding]:
        """End the jobs with a deadline, the next one first, and compare where each job starts."""
        began = {each["metadata"]["name"]: each["status"].get("startTime", "") for each in self._stage.pods()}
        ending = [
            pod["metadata"]["name"]
            for _, pod, deadline in sorted(self._made.running, key=lambda each: each[2] or 0)
            if deadline is not None and pod["metadata"]["name"] in began and _is_job(pod)
        ]
        after = {name: self._predicted_after(outlook) for name, outlook in outlooks.items()}
        seen: dict[str, str] = {}
        for ended in ending:
            if len(seen) == len(outlooks):
                break
            self._stage.end(ended, patient=len(outlooks) > 1)
            for name in (name for name in outlooks if after[name] == ended):
                self._stage.wait_placed(name)
            for name in outlooks:
                if name not in seen and self._stage.is_placed(name):
                    seen[name] = ended
        for name, outlook in outlooks.items():
            expected, found = after[name], seen.get(name)
            question = Question.NO_START if expected is None else Question.START
            if expected is None and outlook.forecast.no_bound is None and self._may_start(outlook):
                yield self._finding(question, Verdict.NONE, f"{name}: started after {found}")
                continue
            about = f"{name}: after {expected}, found {found}; ends {ending}; {outlook.forecast}"
            yield self._found(question, expected == found, about)

    def _may_start(self, outlook: Outlook) -> bool:
        """Return whether cockpit leaves open that the job may start: some node could hold it."""
        reason = outlook.explanation.reason if outlook.explanation is not None else None
        return isinstance(reason, Unschedulable) and reason.by_nodes is not None and bool(reason.by_nodes.when_empty)

    def _predicted_after(self, outlook: Outlook) -> str | None:
        """Return the job whose end starts this one, by cockpit's forecast; None: it names no start."""
        at: Millis | None = outlook.forecast.likely_at
        if at is None:
            return None
        return next((self._names[each.job] for each in reversed(outlook.forecast.after) if each.end_at == at), "now")

    def _found(self, question: Question, right: object, about: str) -> Finding:
        return self._finding(question, Verdict.CORRECT if right else Verdict.WRONG, about)

    def _finding(self, question: Question, verdict: Verdict, about: str) -> Finding:
        return Finding(self._made.kind, question, verdict, about)


def _is_job(pod: dict[str, dict[str, list[dict[str, dict[str, dict[str, str]]]]]]) -> bool:
    """Return whether the bare pod has cards, and so is a job of which cockpit knows the end."""
    return "nvidia.com/gpu" in pod["spec"]["containers"][0]["resources"]["limits"]


def _taint_text(taint: dict[str, str]) -> str:
    return f"{taint['key']}={taint['value']}" if taint["value"] else taint["key"]


def _counted(groups: tuple[NodesExcluded, ...]) -> Counter[tuple[Obstacle, str]]:
    """Return the numbers of nodes by cause, as both the scheduler and cockpit know them."""
    counted: Counter[tuple[Obstacle, str]] = Counter()
    for each in groups:
        about = each.about if each.obstacle is Obstacle.RESOURCE else ""
        counted[_LIKE_SELECTORS.get(each.obstacle, each.obstacle), about] += each.nodes
    return counted
