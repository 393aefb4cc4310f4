"""The tools: which verbs they are, the JSON Schema of their arguments, and the command line that a call means."""

from __future__ import annotations

import re
from argparse import Action
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from cockpit.headless.arguments import UsageError, load, verb_parser
from cockpit.headless.registry import ACTING, VERBS
from cockpit.present.safe import safe

READING: Final = frozenset(
    {
        *("overview", "jobs", "clusters", "fleet", "fleet pods", "fleet object", "job", "trials", "usage", "explain"),
        *("starts", "predict", "priority", "nodes", "cards", "queues", "quota", "holds", "reservations", "staged"),
        *("events", "new", "convert", "launch", "logs", "accounts", "accounts qos", "catalogue list", "catalogue show"),
        *("catalogue export", "accounting", "accounting hours", "cluster show", "engine status", "metrics", "schema"),
        *("doctor", "lab"),
    }
)
"""Verbs that change nothing: neither the cluster nor files of this machine."""
NO_TOOLS: Final = frozenset(
    {
        *("session", "train", "shell", "tensorboard", "wait", "completion", "demo", "play", "replay", "mcp", "serve"),
        *("catalogue", "cluster", "cluster init", "cluster use", "cluster export", "snapshot"),
        *("engine", "engine start", "engine stop", "engine restart", "engine unit"),
    }
)
"""Verbs that need a terminal, run until they are interrupted, or write files of this machine; and second names."""
ACTING_TOOLS: Final = ACTING - READING - NO_TOOLS
_HIDDEN: Final = frozenset(
    {
        *("watch", "follow", "output", "no_header", "yes", "cluster", "show_commands", "help", "request_id"),
        *("apply", "edit", "dry_run", "listen", "journal", "reveal"),
    }
)
"""Arguments that a tool has not: they are for people and scripts, name other files, change the cluster, or
show secrets."""
_FILES: Final = frozenset({"file", "files"})
_ALWAYS: Final = {"launch": ("--dry-run",)}
_TEXTS: Final = frozenset({"logs"})
"""Verbs whose tools return text: of a log only the merged streams have a form of JSON."""
TEXT: Final = "text"
CONFIRM: Final = "confirm"
MOST_VALUES: Final = 1_000
_NUMBER: Final = re.compile(r"-\d+[a-z]*")


class ToolCall(NamedTuple):
    """The command line that a call of a tool means, with its standard input."""

    argv: tuple[str, ...]
    stdin: bytes = b""


def tool_name(verb: str) -> str:
    """Return the name of a verb's tool: `accounts_add-user` for `accounts add-user`."""
    return verb.replace(" ", "_")


def tools(*, acts: bool) -> dict[str, str]:
    """Return the verb of each tool by the tool's name, in the order of the registry."""
    offered = READING | ACTING_TOOLS if acts else READING
    return {tool_name(verb): verb for verb in VERBS if verb in offered}


def description(verb: str) -> str:
    """Return what a tool does, with an example of its command."""
    words = f"{VERBS[verb][2]}. As the command: {load(verb).examples[0]}"
    if verb in ACTING_TOOLS:
        words += (
            f". A call without `{CONFIRM}` changes nothing: it returns what would happen and a token. Show that to the "
            f"user, and call again with the same arguments and the token as `{CONFIRM}` if the user agrees"
        )
    return words + "."


def input_schema(verb: str) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for action in _shown(verb):
        if action.dest in _FILES:
            properties[TEXT] = {"type": "string", "description": f"The content of the file: {_help(action)}"}
            required += [TEXT] if action.nargs in {None, "+", 1} else []
            continue
        properties[_key(action)] = _property(action)
        if action.required or (not action.option_strings and action.nargs in {None, "+"}):
            required.append(_key(action))
    if verb in ACTING_TOOLS:
        properties[CONFIRM] = {"type": "string", "description": "The token that the same call without it returned"}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def call_of(verb: str, arguments: Mapping[str, Any]) -> ToolCall:
    """Return the command line of a call. Raises `UsageError` for arguments that the tool has not, or of other types."""
    known = {TEXT if action.dest in _FILES else _key(action): action for action in _shown(verb)}
    if strange := sorted(set(arguments) - set(known)):
        names = ", ".join(known) or "none"
        raise UsageError(f"{tool_name(verb)} has no argument {safe(strange[0])}; it has: {names}")
    options: list[str] = [*_ALWAYS.get(verb, ())]
    positionals: list[str] = []
    stdin = b""
    for key, action in known.items():
        value = arguments.get(key)
        if key == TEXT:
            if value is not None:
                stdin = _text(key, value).encode(errors="surrogateescape")
                positionals.append("-")
        elif value is not None:
            (options if action.option_strings else positionals).extend(_words(key, action, value))
    parser = verb_parser(verb, load(verb))
    has_json = verb not in _TEXTS and any(each.dest == "output" for each in parser._actions)  # noqa: SLF001 - as below
    output = ("-o", "json") if has_json else ()
    return ToolCall((*verb.split(), *options, *output, *positionals), stdin)


def _shown(verb: str) -> Iterator[Action]:
    """Yield the arguments of a verb that its tool has."""
    seen = set()
    # Not public, and stable since Python 3.2: argparse has no other way to list what a parser takes.
    for action in verb_parser(verb, load(verb))._actions:  # noqa: SLF001 - see above
        if action.dest not in _HIDDEN and _key(action) not in seen:
            seen.add(_key(action))
            yield action


def _key(action: Action) -> str:
    """Return the name of an argument: that of its long option, else of its place."""
    return action.option_strings[-1].lstrip("-").replace("-", "_") if action.option_strings else action.dest


def _help(action: Action) -> str:
    words = action.help or str(action.metavar or action.dest)
    return words.replace("%%", "%").removesuffix("; - is stdin")


def _property(action: Action) -> dict[str, Any]:
    described = {"description": _help(action)}
    if action.nargs == 0:
        return {"type": "boolean", **described}
    one = {"type": "string", **({"enum": list(action.choices)} if action.choices else {})}
    several = action.nargs in {"+", "*"} or type(action).__name__ == "_AppendAction"
    return {"type": "array", "items": one, **described} if several else {**one, **described}


def _words(key: str, action: Action, value: object) -> Sequence[str]:
    """Return the words of the command line for one argument."""
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise UsageError(f"{key}: true or false, and not {safe(str(value))}")
        return [action.option_strings[-1]] if value else []
    values = value if isinstance(value, list) else [value]
    if len(values) > MOST_VALUES:
        raise UsageError(f"{key}: at most {MOST_VALUES} values in one call")
    texts = [_text(key, each) for each in values]
    if action.option_strings:
        # In one word, so that a value that begins with a minus stays a value.
        return [f"{action.option_strings[-1]}={each}" for each in texts]
    for each in texts:
        if each.startswith("-") and not _NUMBER.fullmatch(each):
            raise UsageError(f"{key}: {safe(each)} begins with a minus; give options by their own names")
    return texts


def _text(key: str, value: object) -> str:
    if isinstance(value, str):
        return value
    # Models write ids as numbers; a boolean is an integer too in Python.
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise UsageError(f"{key}: a text, and not {type(value).__name__}")
