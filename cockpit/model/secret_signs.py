"""By what a secret is recognised at a glance: names that mean one, and beginnings without which there is none."""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "***"
"""The text that replaces a secret."""

# Names

_WORDS_OF_NAME: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
STRONG: Final = re.compile(
    r"secret(?!ar)|passw|passphrase|passcode|credential|(?:api|access|private|auth|account|client|encryption|signing|ssh"
    r"|service|storage|shared|master|license|deploy|webhook|wandb|subscription)[_.-]?key",
    re.IGNORECASE,
)
"""A part of a name whose value is a secret in any text."""
TOKEN: Final = re.compile(r"token(?!s|iz)", re.IGNORECASE)
"""A part of a name that means a secret, or a piece of a text that a model reads; `tokens` and `tokenizer` mean none."""
WEAK: Final = frozenset({"key", "auth", "authorization", "pass", "pwd", "pat"})
"""Words of a name that mean a secret in an environment, and in other text only where the value looks like one."""
_NO_SECRET: Final = re.compile(
    r"(?<![a-z])(?:pad|eos|bos|unk|cls|sep|mask|special|image|audio|video|stop|next|prev|first|last)[_.-]?token"
    r"|token[_.-]?(?:ids?|type)(?![a-z])"
    r"|(?<![a-z])(?:primary|foreign|partition|sort|cache|public|pub|object|bucket|text|image|label|dict|monitor|metric"
    r"|index|row|column|shard|routing|unique|p?rng|kv|map|feature|attention|query|order|lookup|hot|short|input|output"
    r"|target)[_.-]?keys?(?![a-z])"
    r"|pull[_.-]?secrets?",
    re.IGNORECASE,
)
"""A part of a name that has a telling word and means no secret: tokens of a text, keys by which something is found."""
_ABOUT_SECRETS: Final = frozenset(
    {
        *("file", "files", "path", "paths", "dir", "directory", "folder", "name", "names", "ref", "refs", "helper"),
        *("type", "mode", "count", "len", "length", "size", "limit", "budget", "bits", "ttl", "algorithm", "dropout"),
        *("embedding", "embeddings", "format", "encoding", "stdin"),
    }
)
"""Last words of the names of what only says where a secret is, or what kind it has."""
_PATH: Final = re.compile(
    r"(?:~|\.{1,2}|/(?:home|root|etc|run|var|data|mnt|usr|opt|tmp|scratch|workspace|secrets?|users|lustre|nfs|srv))"
    r"/[\w./@-]{1,4096}",
    re.IGNORECASE,
)
_HARMLESS_NAMES: Final = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK", "GIT_ASKPASS", "SSH_ASKPASS"})
"""Variables of every shell, whose names only look like a secret's."""


def is_secret_name(name: str) -> bool:
    """Return whether the name of an environment variable says that its value is a secret."""
    if name in _HARMLESS_NAMES:
        return False
    name = _NO_SECRET.sub("", name)
    words = words_of_name(name)
    if words and words[-1] in _ABOUT_SECRETS:
        return False
    return bool(STRONG.search(name) or TOKEN.search(name)) or not WEAK.isdisjoint(words)


def is_secret_variable(name: str, value: str) -> bool:
    """Return whether an environment variable holds a secret. The path of a key is none."""
    return bool(value) and is_secret_name(name) and not is_path(name, value)


def words_of_name(name: str) -> list[str]:
    return [word.lower() for word in _WORDS_OF_NAME.findall(name)]


def is_path(name: str, value: str) -> bool:
    """Return whether the value is the path of a file with a key or token. A password may look like a path."""
    return _PATH.fullmatch(value) is not None and not re.search("passw|secret", name, re.IGNORECASE)


# Text

FORM_TRIGGERS: Final = (
    *("hf_", "hp_", "ho_", "hu_", "hs_", "hr_", "sk-", "akia", "asia", "aiza", "xox", "npm_", "eyj", "glpat", "pat_"),
    *("nvapi-", "pypi-", "ya29", "ls0tls1"),
)
_TRIGGERS: Final = (
    *("token", "secret", "passw", "passp", "passc", "credential", "key", "auth", "bearer", "aws_", "pwd", "_pass"),
    *("://", '"env', "_pat"),
    *FORM_TRIGGERS,
)
"""Every secret has one of these in its lower case. A scan for each is much faster than one for the patterns below."""
SHORTEST: Final = 18
"""Shortest text with a secret that has no name: the form with the fewest characters is that long."""
LONGEST_KEY: Final = 16384
"""Most characters of a private key."""


def may_hold_secret(text: str) -> bool:
    """Return whether the text must be looked through; for nearly all texts it need not."""
    if len(text) < SHORTEST and "=" not in text and ":" not in text and " " not in text and "," not in text:
        return False
    lowered = text.lower()
    return any(map(lowered.__contains__, _TRIGGERS))
