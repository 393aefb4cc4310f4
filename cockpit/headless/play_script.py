"""Play scripts: one step a line, read before anything is opened. `docs/headless.md` describes them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cockpit.errors import CockpitError, SpecErrors
from cockpit.model.quantity import parse_duration
from cockpit.model.text import is_whole
from cockpit.present.safe import safe

PATIENCE_SECONDS = 5
"""How long `wait` waits where the script gives no time."""
DEFAULT_FIXTURE, DEFAULT_SEED = "campus", 1
LEAST, MOST = (40, 10), (500, 200)
"""The bounds of a screen's columns and rows."""


class ExpectationFailed(CockpitError):
    """The screen was not as the script says. The text holds the line and the whole screen."""


class Size(NamedTuple):
    """Set the screen's size from here on."""

    columns: int
    rows: int


class Cluster(NamedTuple):
    """Choose the cluster. `fixture` and `seed` are a demo's."""

    name: str
    fixture: str = DEFAULT_FIXTURE
    seed: int = DEFAULT_SEED


class Theme(NamedTuple):
    """Draw in these colours from here on."""

    name: str


class Press(NamedTuple):
    """Press keys, one after the other, written as people write them: `j`, `Enter`, `Ctrl-d`, `?`."""

    keys: tuple[str, ...]


class Type(NamedTuple):
    """Type a text, letter by letter."""

    text: str


class Wait(NamedTuple):
    """Wait until the text is visible; without a text, for the time."""

    text: str
    seconds: int


class Expect(NamedTuple):
    """Expect that the text is visible now; `absent`: that it is not."""

    text: str
    absent: bool = False


class Pause(NamedTuple):
    """Stop the demo's clock."""


class Speed(NamedTuple):
    """Set how many times faster than real time the demo's clock runs from here on."""

    times: float


class Screenshot(NamedTuple):
    """Write the screen to NAME.txt and NAME.svg."""

    name: str


Act = Size | Theme | Press | Type | Wait | Expect | Pause | Speed | Screenshot


class Step(NamedTuple):
    """An act, and its place in the script: `tour.play:7: wait "running"`."""

    origin: str
    act: Act


class Script(NamedTuple):
    """The steps in their order. `cluster` None: the one that the command chooses."""

    cluster: Cluster | None
    steps: tuple[Step, ...]


def read_script(source: str, text: str) -> Script:
    """Read a script. Raises `SpecErrors` with every line that is wrong; `source` names the file in them."""
    cluster, steps, errors = None, list[Step](), list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        try:
            # As a shell does it, with `#` for comments.
            words = shlex.split(line, comments=True)
            act = _act(words) if words else None
        except ValueError as wrong:
            # All errors are collected: one run shows every wrong line.
            errors.append(f"{source}:{number}: {wrong}")
            continue
        if not isinstance(act, Cluster):
            steps += [Step(f"{source}:{number}: {safe(line.strip())}", act)] if act is not None else []
        elif cluster is None and not steps:
            cluster = act
        else:
            errors.append(f"{source}:{number}: cluster is chosen once, before everything else")
    if errors:
        raise SpecErrors(errors)
    return Script(cluster, tuple(steps))


def _act(words: Sequence[str]) -> Act | Cluster:
    """Parse the words of a line. Raises `ValueError` with a sentence."""
    reader = _READERS.get(words[0])
    if reader is None:
        raise ValueError(f"{safe(words[0])!r} is no step; there are {', '.join(_READERS)}")
    return reader(words[1:])


def _size(words: Sequence[str]) -> Size:
    columns, _, rows = _one(words, "size 120x40").partition("x")
    if not (is_whole(columns) and is_whole(rows)):
        raise ValueError("size wants columns and rows, as in: size 120x40")
    size = Size(int(columns), int(rows))
    if not all(least <= given <= most for least, given, most in zip(LEAST, size, MOST, strict=True)):
        raise ValueError(f"size goes from {'x'.join(map(str, LEAST))} to {'x'.join(map(str, MOST))}")
    return size


def _cluster(words: Sequence[str]) -> Cluster:
    """Parse `NAME`, or `demo [FIXTURE] [--seed N]`."""
    name, *more = words or [""]
    seed = str(DEFAULT_SEED)
    if more[-2:-1] == ["--seed"]:
        *more, _, seed = more
    if not name or (more and name != "demo") or len(more) > 1 or not is_whole(seed):
        raise ValueError("cluster wants a name, as in: cluster demo campus --seed 3")
    return Cluster(name, more[0] if more else DEFAULT_FIXTURE, int(seed))


def _press(words: Sequence[str]) -> Press:
    if not words:
        raise ValueError("press wants keys, as in: press j j Enter")
    return Press(tuple(words))


def _wait(words: Sequence[str]) -> Wait:
    """Parse `"text" [within 5s]`, or a time."""
    if len(words) == 1 and not isinstance(seconds := parse_duration(words[0]), str):
        return Wait("", seconds)
    text, *more = words or [""]
    if not text or (more and (len(more) != 2 or more[0] != "within")):
        raise ValueError('wait wants a text or a time, as in: wait "3 running" within 10s')
    return Wait(text, _seconds(more[1]) if more else PATIENCE_SECONDS)


def _seconds(text: str) -> int:
    seconds = parse_duration(text)
    if isinstance(seconds, str):
        raise ValueError(seconds)  # noqa: TRY004 - the word is wrong, not its type
    return seconds


def _expect(words: Sequence[str]) -> Expect:
    # `expect not` with nothing after it expects the word "not".
    absent = words[:1] == ["not"] and len(words) > 1
    return Expect(_one(words[1:] if absent else words, 'expect "running", or: expect not "running"'), absent)


def _pause(words: Sequence[str]) -> Pause:
    if words != ["demo"]:
        raise ValueError("only a demo's time can stand still: pause demo")
    return Pause()


def _speed(words: Sequence[str]) -> Speed:
    text = _one(words, "speed 600")
    times = float(text) if is_whole(text.replace(".", "", 1)) else 0.0
    if not 0 < times <= 100_000:
        raise ValueError("speed wants a number between 0 and 100000, as in: speed 600")
    return Speed(times)


def _screenshot(words: Sequence[str]) -> Screenshot:
    name = _one(words, "screenshot jobs")
    if not name.replace("-", "").replace("_", "").isalnum():
        raise ValueError("screenshot wants a name of letters, figures, - and _; the folder is --out")
    return Screenshot(name)


def _one(words: Sequence[str], example: str) -> str:
    if len(words) != 1 or not words[0]:
        raise ValueError(f"this wants one word, or a text in quotes: {example}")
    return words[0]


_READERS: dict[str, Callable[[Sequence[str]], Act | Cluster]] = {
    "size": _size,
    "cluster": _cluster,
    "theme": lambda words: Theme(_one(words, "theme dark")),
    "press": _press,
    "type": lambda words: Type(_one(words, 'type "state:queued"')),
    "wait": _wait,
    "expect": _expect,
    "pause": _pause,
    "speed": _speed,
    "screenshot": _screenshot,
}
