"""The rules by which secrets are recognised in text, and masked where text is shown.

A secret is recognised by its name (`HF_TOKEN=…`, `--password …`, `"apiKey": "…"`, `Authorization: Bearer …`), by its
form (`ghp_…`, `AKIA…`, a JSON web token, a private key), or by its place in an address (`https://user:password@host`).
The name stays and the value becomes `MASK`. A masked text stays what it was otherwise: JSON stays JSON, a command stays
one that a shell can split.

A value that only refers to a secret (`$HF_TOKEN`), a number and a word of a tokenizer (`<pad>`) are no secrets. Where a
word such as `token` or `key` alone stands before a value, as often in logs of training, the value is masked only if it
looks drawn at random. Rather too much is masked than too little.

Only what is shown passes through here: jobs get their true values. Within `revealed()` nothing is masked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from cockpit.model.secret_signs import MASK, is_secret_variable, may_hold_secret

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec

_REVEALED: Final = ContextVar("revealed", default=False)


@contextmanager
def revealed() -> Iterator[None]:
    """Show secrets within this context, for a user who wants to read their own."""
    token = _REVEALED.set(True)
    try:
        yield
    finally:
        _REVEALED.reset(token)


_MASKED_VALUE: Final = re.compile(r"\A\*{3}\Z|(?:[=:\"']|bearer )\s?\*{3}(?![*/])|(?<!\*)\*{3}@", re.IGNORECASE)
"""A mask where a secret would be: alone, as the value of a name, or before the host of an address."""


def masked_env(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for showing: values of secret names are masked, and secrets within the other values."""
    return {name: masked_variable(name, value) for name, value in env.items()}


def masked_spec(spec: JobSpec) -> JobSpec:
    """Return a job for showing: the same, with its environment and its name masked, from which others are derived."""
    env, name = masked_env(spec.env), masked(spec.name)
    return spec if env == spec.env and name == spec.name else replace(spec, env=env, name=name)


def masked_variable(name: str, value: str) -> str:
    """Return the value of an environment variable for showing."""
    return value if _REVEALED.get() else _without_secret(name, value)


def _without_secret(name: str, value: str) -> str:
    return MASK if is_secret_variable(name, value) else without_secrets(value)


def withheld_spec(spec: JobSpec) -> JobSpec:
    """Return a job without the secrets of its environment, for a user who must not have them: also within `revealed()`.
    The same object where it has none."""
    env = {name: _without_secret(name, value) for name, value in spec.env.items()}
    return spec if env == spec.env else replace(spec, env=env)


def restored_spec(spec: JobSpec, before: JobSpec) -> JobSpec:
    """Return a changed job with the true values of those variables that still have the masked text of `before`."""
    masks = withheld_spec(before).env
    kept = {name: before.env[name] for name, value in spec.env.items() if value and masks.get(name) == value}
    env = {**spec.env, **kept}
    return spec if env == spec.env else replace(spec, env=env)


def is_masked_value(value: str) -> bool:
    """Return whether the value of a variable is one that was masked, and so is not the true one."""
    return MASK in value and _MASKED_VALUE.search(value) is not None


def masked(text: str) -> str:
    """Return the text with `MASK` in place of each secret in it; the same object where there is none."""
    return _masked(text) if may_hold_secret(text) and not _REVEALED.get() else text


def without_secrets(text: str) -> str:
    """Return the text masked, also within `revealed()`, for a user who must not have the secrets."""
    return _masked(text) if may_hold_secret(text) else text


def masked_bytes(data: bytes) -> bytes:
    """Return text in UTF-8 without its secrets; bytes of other encodings stay."""
    if _REVEALED.get():
        return data
    if data.isascii():
        text = data.decode("ascii")
        return _masked(text).encode("ascii") if may_hold_secret(text) else data
    # Undecodable bytes become surrogates and are restored.
    text = data.decode("utf-8", "surrogateescape")
    return _masked(text).encode("utf-8", "surrogateescape") if may_hold_secret(text) else data


def bytes_without(data: bytes, values: Iterable[str]) -> bytes:
    """Return text in UTF-8 with `MASK` in place of these values, wherever they stand."""
    for value in values:
        secret = value.encode("utf-8", "surrogateescape")
        if secret in data and not _REVEALED.get():
            data = data.replace(secret, MASK.encode())
    return data


def is_revealing() -> bool:
    """Return whether secrets are shown here."""
    return _REVEALED.get()


def _masked(text: str) -> str:
    # Loaded when a text first needs it: compiling the patterns takes milliseconds at the start of each command.
    from cockpit.model.masked_text import without_any

    return without_any(text)
