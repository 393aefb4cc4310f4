"""Lists the values that an argument may have, by the argument's name: jobs, nodes, columns, files …"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cockpit.headless.completing import Completion, Place
from cockpit.present.safe import safe

if TYPE_CHECKING:
    from argparse import Action
    from collections.abc import Awaitable, Callable, Iterable

    from cockpit.backends.base import Backend
    from cockpit.headless.services import Services

FILES, FOLDERS = Completion("<files>"), Completion("<folders>")
BY_SHELL: Final = (FILES, FOLDERS)
"""Arguments whose values the shell completes itself."""
_FOR_THE_SHELL: Final = {"FILE": FILES, "SCRIPT": FILES, "FOLDER": FOLDERS}
_ENDED_TOO: Final = frozenset({"job", "logs", "clone", "delete", "requeue", "usage", "events", "trials", "tensorboard"})
"""Verbs that are also about jobs that have ended."""


class Offers:
    """The values that fit at a place of a command. No engine is started for them: without one there are no jobs."""

    def __init__(self, place: Place, services: Services) -> None:
        self._place, self._services = place, services
        self._backend: Backend | None = None

    async def fitting(self, last: str) -> list[Completion]:
        """Return the values that begin with `last`."""
        completions = [*self._place.verbs, *await self._words_of_the_noun(last)]
        for argument in self._place.arguments:
            completions += await self._values(argument, last)
        # Options only on request, or where nothing else fits: they would hide the values.
        if last.startswith("-") or not completions:
            completions += self._place.options
        shell = [each for each in BY_SHELL if each in completions]
        # Of equal words the first counts, in the order of the list; hence it is reversed twice.
        words = {each.word: each for each in reversed(completions) if each.word.startswith(last) and each not in shell}
        return [*reversed(words.values()), *shell]

    async def close(self) -> None:
        if self._backend is not None:
            await self._backend.close()

    async def _values(self, argument: Action, last: str) -> Iterable[Completion]:
        if argument.choices is not None:
            return [Completion(str(each)) for each in argument.choices]
        name = str(argument.metavar)
        if name in _FOR_THE_SHELL:
            return [_FOR_THE_SHELL[name]]
        if name in _NEARBY:
            return _NEARBY[name](self._services)
        if name in {"A,B", "A,-B"}:
            return _further(self._columns(), last, "-" if "-" in name else "")
        # Only for values of the cluster: connecting takes the most of the time until the answer.
        backend = self._connection() if name in _IN_CLUSTER else None
        if backend is None:
            return []
        offers = await _IN_CLUSTER[name](backend, self._place)
        return _further(offers, last, "") if "," in name else offers

    def _columns(self) -> Iterable[Completion]:
        from cockpit.headless.lists import table_of

        table = table_of(self._place.verb)
        return [Completion(column.id, column.title.lower()) for column in table.columns] if table is not None else []

    async def _words_of_the_noun(self, last: str) -> Iterable[Completion]:
        """Return names and settings of accounts and the catalogue, as the cockpit's own command line completes them."""
        noun, _, verb = self._place.verb.partition(" ")
        line = " ".join((noun, verb, *self._place.words, last))
        if noun == "accounts" and verb and (backend := self._connection()) is not None:
            from cockpit.headless.typed_line import completions as of_accounts

            return _last_words(of_accounts(line, await backend.accounts()))
        if noun == "catalogue" and verb and (backend := self._connection()) is not None:
            from cockpit.headless.catalogue_words import completions as of_catalogue

            return _last_words(of_catalogue(line, await backend.catalogue()))
        return []

    def _connection(self) -> Backend | None:
        if self._backend is None:
            self._backend = self._services.reach(self._place.cluster)
        return self._backend


def _last_words(lines: Iterable[str]) -> list[Completion]:
    return [Completion(line.rpartition(" ")[2]) for line in lines]


def _further(offers: Iterable[Completion], last: str, sign: str) -> list[Completion]:
    """Return the values for the last of several words with commas between them, without those that are there
    already."""
    before, comma, begun = last.rpartition(",")
    # The sign before a column (descending) belongs to the word that is being typed.
    minus = sign if sign and begun.startswith(sign) else ""
    # A column that is already in the list is not offered again.
    there = {each.removeprefix("-") for each in before.split(",")}
    return [Completion(f"{before}{comma}{minus}{word}", about) for word, about in offers if word not in there]


async def _jobs(backend: Backend, place: Place) -> list[Completion]:
    rows = await backend.jobs(ended=place.verb in _ENDED_TOO)
    return [Completion(str(row.id), f"{safe(row.name)} · {safe(row.user)} · {row.state}") for row in rows]


async def _nodes(backend: Backend, _: Place) -> list[Completion]:
    return [Completion(row.node.name) for row in await backend.nodes()]


async def _reservations(backend: Backend, _: Place) -> list[Completion]:
    return [Completion(each.name, ", ".join(each.nodes)) for each in await backend.reservations()]


async def _copies(backend: Backend, _: Place) -> list[Completion]:
    return [Completion(each.key, each.source) for each in await backend.staged()]


async def _people(backend: Backend, _: Place) -> list[Completion]:
    return [Completion(user) for user in sorted({row.user for row in await backend.jobs()})]


def _fixtures(_: Services) -> list[Completion]:
    from cockpit.resources import fixture

    files = sorted(file.name for file in fixture("clusters").iterdir())
    return [*(Completion(name.removesuffix(".toml")) for name in files if name.endswith(".toml")), FILES]


def _priorities(_: Services) -> list[Completion]:
    from cockpit.model.spec import PriorityWord

    return [Completion(str(word)) for word in PriorityWord]


def _themes(_: Services) -> list[Completion]:
    from cockpit.resources import theme_files

    return [Completion(file.name.removesuffix(".toml")) for file in theme_files()]


_NEARBY: Final[dict[str, Callable[[Services], list[Completion]]]] = {
    "CLUSTER": lambda services: [Completion(*each) for each in services.clusters().items()],
    "FIXTURE": _fixtures,
    "PRIORITY": _priorities,
    "THEME": _themes,
}
"""Values that are known without a cluster."""
_IN_CLUSTER: Final[dict[str, Callable[[Backend, Place], Awaitable[list[Completion]]]]] = {
    "ID": _jobs,
    "NODE": _nodes,
    "N1,N2": _nodes,
    "RESERVATION": _reservations,
    "KEY": _copies,
    "U": _people,
}
