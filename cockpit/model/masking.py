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

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec

MASK: Final = "***"
"""The text that replaces a secret."""

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

# Names

_WORDS_OF_NAME: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_STRONG: Final = re.compile(
    r"secret(?!ar)|passw|passphrase|passcode|credential|(?:api|access|private|auth|account|client|encryption|signing|ssh"
    r"|service|storage|shared|master|license|deploy|webhook|wandb|subscription)[_.-]?key",
    re.IGNORECASE,
)
"""A part of a name whose value is a secret in any text."""
_TOKEN: Final = re.compile(r"token(?!s|iz)", re.IGNORECASE)
"""A part of a name that means a secret, or a piece of a text that a model reads; `tokens` and `tokenizer` mean none."""
_WEAK: Final = frozenset({"key", "auth", "authorization", "pass", "pwd", "pat"})
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
_HARMLESS_NAMES: Final = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK", "GIT_ASKPASS", "SSH_ASKPASS"})
"""Variables of every shell, whose names only look like a secret's."""


def is_secret_name(name: str) -> bool:
    """Return whether the name of an environment variable says that its value is a secret."""
    if name in _HARMLESS_NAMES:
        return False
    name = _NO_SECRET.sub("", name)
    words = _words(name)
    if words and words[-1] in _ABOUT_SECRETS:
        return False
    return bool(_STRONG.search(name) or _TOKEN.search(name)) or not _WEAK.isdisjoint(words)


def is_secret_variable(name: str, value: str) -> bool:
    """Return whether an environment variable holds a secret. The path of a key is none."""
    return bool(value) and is_secret_name(name) and not _is_path(name, value)


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS_OF_NAME.findall(name)]


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


# Text

_FORM_TRIGGERS: Final = (
    *("hf_", "hp_", "ho_", "hu_", "hs_", "hr_", "sk-", "akia", "asia", "aiza", "xox", "npm_", "eyj", "glpat", "pat_"),
    *("nvapi-", "pypi-", "ya29", "ls0tls1"),
)
_TRIGGERS: Final = (
    *("token", "secret", "passw", "passp", "passc", "credential", "key", "auth", "bearer", "aws_", "pwd", "_pass"),
    *("://", '"env', "_pat"),
    *_FORM_TRIGGERS,
)
"""Every secret has one of these in its lower case. A scan for each is much faster than one for the patterns below."""
_SHORTEST: Final = 18
"""Shortest text with a secret that has no name: the form with the fewest characters is that long."""

_FORMS: Final = (
    # Not the name of a class or a word: `hf_BertForSequenceClassification`.
    r"hf_(?!(?:(?:[A-Z][a-z]{2,})+|[a-z]+)(?![A-Za-z0-9]))[A-Za-z0-9]{15,}",
    r"gh[pousr]_[A-Za-z0-9]{15,}",
    r"github_pat_\w{16,}",
    r"glpat-[\w-]{15,}",
    r"sk-(?:[A-Za-z0-9]{1,12}-){0,4}[A-Za-z0-9_]{15,}[\w-]*",
    r"(?:AKIA|ASIA)[0-9A-Z]{14,}",
    r"AIza[\w-]{30,}",
    r"xox[abeprs]-[\w-]{13,}",
    r"npm_[A-Za-z0-9]{20,}",
    r"pypi-[\w-]{20,}",
    r"dckr_pat_[\w-]{16,}",
    r"nvapi-[\w-]{16,}",
    r"ya29\.[\w-]{16,}",
    r"eyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)?",
    r"LS0tLS1CRUdJTi[A-Za-z0-9+/=]{16,}",
)
"""Forms of the tokens of Hugging Face, GitHub, GitLab, OpenAI and Anthropic, AWS, Google, Slack, npm, PyPI, Docker,
NVIDIA, JSON web tokens (RFC 7519), and keys and certificates in Base64, as a kubeconfig has them."""
# A letter before a token is no part of it where it ends an escape: of a colour, or of a line break in JSON.
_BEGIN: Final = r"(?:(?<![A-Za-z0-9])|(?<=\dm)|(?<=\[m)|(?<=\\[nrt]))"
_FORM: Final = re.compile(rf"{_BEGIN}(?:{'|'.join(_FORMS)})")
_KEY_BEGINS: Final = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----")
_KEY_TEXT: Final = re.compile(r"(?:\s|\\[rn]|[A-Za-z0-9+/=])*+")
LONGEST_KEY: Final = 16384
"""Most characters of a private key."""
_OF_ADDRESS: Final = re.compile(r"(://(?:[^\s/@:\"'\\]{0,256}:)?)([^\s/@\"'\\]{1,512})(?=@)")
_SCHEME: Final = r"(?:(?:bearer|basic|token|digest|apikey|negotiate)\s+)?"
_HEADER: Final = re.compile(
    rf"(authorization\\?[\"']?\s{{0,3}}[:=,]\s{{0,3}}\\?[\"']?{_SCHEME})([^\s\"'\\,;]{{2,8192}})", re.IGNORECASE
)
# A single word of letters is text: "Bearer authentication required".
_BEARER: Final = re.compile(
    rf"({_BEGIN}bearer\s{{1,3}})(?![a-z]{{1,16}}(?![A-Za-z0-9._~+/=-]))([A-Za-z0-9._~+/=-]{{8,8192}})", re.IGNORECASE
)

_ENVIRONMENT: Final = re.compile(
    r"(\"env(?:ironment)?\"\s{0,3}:\s{0,3}\{)((?:[^{}\"]|\"(?:[^\"\\]|\\.){0,65536}\"){0,4096})"
)
"""An environment as JSON has it, where each name that is a secret's counts."""
_VARIABLE: Final = re.compile(r"\"((?:[^\"\\]|\\.)*)\"(\s{0,3}:\s{0,3})\"((?:[^\"\\]|\\.)*)\"")
_NAME_BEFORE: Final = re.compile(r"[\w.-]{0,64}\Z")
_BARE: Final = r"(?:[^\s\"'\\&;|)\]},\x1b]{1,128}+|,(?=[^\s\"'])|\\\\)"
"""A part of a value without quotes."""
_BARE_REST: Final = re.compile(f"{_BARE}*")
# The name goes on behind its telling word. Then comes a separator: as in a shell, Python, YAML or JSON; that of an
# option and its argument, in one text or as two words of a list; or that of name and value in a Kubernetes object.
# The value heeds case: ignoring it is ten times as slow.
_NAMED: Final = re.compile(
    r"(token(?!s|iz)|secret|passw|passphrase|passcode|pass|pwd|credential|key|auth|pat|aws_)(?P<tail>[\w.-]{0,64}+)"
    r"(?P<quote>\\?[\"'])?"
    r"(?:(?P<value_of>\s{0,40},?\s{0,40}\\?[\"']?value\\?[\"']?\s{0,3}:\s{0,3})"
    r"|(?P<equals>[ \t]{0,3}(?:=>|:=|[=:])[ \t]{0,3})|(?P<gap>,\s{0,2}|\s{1,3}))"
    r"(?:\x1b\[[\d;:]{0,32}m){0,4}"
    r"(?-i:\\\"(?P<escaped>(?:[^\"\\]|\\\\){1,8192})\\\"|\"(?P<double>(?:[^\"\\\n]|\\.){1,8192})\""
    r"|'(?P<single>[^'\n]{1,8192})'"
    rf"|(?P<bare>(?![<\[{{(]){_BARE}{{1,2}}))",
    re.IGNORECASE,
)
_TELLING_WORD: Final = re.compile(
    "token(?!s|iz)|secret|passw|passphrase|passcode|pass|pwd|credential|key|auth|pat|aws_"
)
_VALUES: Final = ("escaped", "double", "single", "bare")
_REFERENCE: Final = re.compile(r"\$(?:\w|\{|\()|%\w+%|\*+\Z|<[^<>\s]{1,64}>\Z")
"""The beginning of a value that is none itself: a variable, what is masked already, or `<a word in angles>`."""
_PLAIN_WORD: Final = re.compile(
    r"-?[\d.,]+[a-z%/]{0,3}|true|false|none|null|nil|yes|no|unset|undefined|enabled|disabled|required|optional|denied"
    r"|refused|failed|missing|invalid|expired|wrong|incorrect|empty|ok|files|compat|permission|not|cannot|is",
    re.IGNORECASE,
)
_PATH: Final = re.compile(
    r"(?:~|\.{1,2}|/(?:home|root|etc|run|var|data|mnt|usr|opt|tmp|scratch|workspace|secrets?|users|lustre|nfs|srv))"
    r"/[\w./@-]{1,4096}",
    re.IGNORECASE,
)
_DOTTED_NAME: Final = re.compile(
    r"(?:[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+[A-Za-z]?)(?:[-._](?:[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+[A-Za-z]?))+"
)
"""A name of several words and numbers, such as that of a model: `Llama-3.1-8B-Instruct`."""
_WORD_BEFORE: Final = re.compile(r"(\w{1,32}) \Z")
_RANDOM: Final = re.compile(r"(?=[^\d\s]*\d)(?=[^a-z\s]*[a-z])(?=[^A-Z\s]*[A-Z])[\w+=~.-]{12,512}|[0-9a-f]{24,512}")
"""What looks drawn at random."""


def may_hold_secret(text: str) -> bool:
    """Return whether the text must be looked through; for nearly all texts it need not."""
    if len(text) < _SHORTEST and "=" not in text and ":" not in text and " " not in text and "," not in text:
        return False
    lowered = text.lower()
    return any(map(lowered.__contains__, _TRIGGERS))


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
    # Forms first: a name before them would else be judged by a value that is half of one.
    if "PRIVATE KEY" in text:
        text = _without_private_keys(text)
    if "://" in text and "@" in text:
        text = _OF_ADDRESS.sub(_address, text)
    if '"env' in text:
        text = _ENVIRONMENT.sub(lambda match: match[1] + _VARIABLE.sub(_variable, match[2]), text)
    if any(map(text.lower().__contains__, _FORM_TRIGGERS)):
        text = _FORM.sub(MASK, text)
    lowered = text.lower()
    if "bearer" in lowered:
        text = _BEARER.sub(rf"\1{MASK}", text)
    if "authorization" in lowered:
        text = _HEADER.sub(_header, text)
    return _without_named(text)


def _without_private_keys(text: str) -> str:
    parts, at = list[str](), 0
    while (begin := _KEY_BEGINS.search(text, at)) is not None:
        end = text.find("-----END ", begin.end(), begin.end() + LONGEST_KEY)
        # The end may lie outside of a window of a log: then what looks like the lines of a key.
        if end < 0:
            end = _KEY_TEXT.match(text, begin.end()).end()  # type: ignore[union-attr]  # it also matches nothing
        parts += [text[at : begin.end()], MASK]
        at = end
    return "".join([*parts, text[at:]])


def _address(match: re.Match[str]) -> str:
    # A user's name alone is no secret, unless it is a token as git takes one.
    is_name = match[1] == "://" and not (len(match[2]) >= _SHORTEST and _RANDOM.fullmatch(match[2]))
    return match[0] if is_name or _REFERENCE.match(match[2]) else f"{match[1]}{MASK}"


def _header(match: re.Match[str]) -> str:
    return match[0] if _PLAIN_WORD.fullmatch(match[2]) else f"{match[1]}{MASK}"


def _variable(match: re.Match[str]) -> str:
    return f'"{match[1]}"{match[2]}"{MASK}"' if is_secret_variable(match[1], match[3]) else match[0]


def _without_named(text: str) -> str:
    parts, done, at = list[str](), 0, 0
    lowered = text.lower()
    # The words are found in the lower case, five times as fast; that of a few letters is longer than they are.
    words = lowered if len(lowered) == len(text) else None
    while (match := _next_named(text, words, at)) is not None:
        kind = next(kind for kind in _VALUES if match[kind] is not None)
        if not _is_secret(_name_of(match), match[kind], is_argument=match["gap"] is not None):
            at = match.end(1)  # the value may have a secret of its own
            continue
        begin, at = match.span(kind)
        if kind == "bare":
            at = _BARE_REST.match(text, at).end()  # type: ignore[union-attr]  # it also matches nothing
        # A number of JSON becomes a string: without quotes the text were no JSON any more.
        quote = match["quote"] if kind == "bare" and match["equals"] and match["quote"] else ""
        parts += [text[done:begin], quote, MASK, quote]
        done = at
    return "".join([*parts, text[done:]]) if parts else text


def _next_named(text: str, words: str | None, at: int) -> re.Match[str] | None:
    """Return the next name with a value. `words`: the text in lower case; None: it has other places."""
    if words is None:
        return _NAMED.search(text, at)
    while (word := _TELLING_WORD.search(words, at)) is not None:
        if (match := _NAMED.match(text, word.start())) is not None:
            return match
        at = word.end()
    return None


def _name_of(match: re.Match[str]) -> str:
    """Return the whole name of which the match has the telling part."""
    before = _NAME_BEFORE.search(match.string, max(0, match.start() - 64), match.start())
    begin = before.start() if before is not None else match.start()
    # In JSON the letter of an escape: the name begins a line.
    is_escape = match.string[begin - 1 : begin] == "\\" and match.string[begin] in "nrt"
    name = match.string[begin + is_escape : match.end("tail")]
    # Of words in a text the one before tells what kind of key it is: "cache key: 3f78".
    word = _WORD_BEFORE.search(match.string, max(0, begin - 33), begin) if name.lower() == "key" else None
    return name if word is None else f"{word[1]}_{name}"


def _is_secret(name: str, value: str, *, is_argument: bool) -> bool:
    """Return whether a value behind this name in a text is a secret. `is_argument`: only a blank or comma separates
    them, which means something behind an option alone."""
    is_option = name.startswith("--")
    if _REFERENCE.match(value):
        return False
    if is_argument and (not is_option or value.startswith("-")):
        return False
    name = name.lstrip("-.")
    if not is_secret_name(name) or _is_path(name, value):
        return False
    if name.startswith("AWS_"):
        return True
    if _STRONG.search(name):
        return not _PLAIN_WORD.fullmatch(value) or value[0].isdigit()
    return not _PLAIN_WORD.fullmatch(value) and (
        _is_random(value[:256]) or _names_one(name, value, is_option=is_option)
    )


def _is_random(value: str) -> bool:
    return _RANDOM.fullmatch(value) is not None and _DOTTED_NAME.fullmatch(value) is None


def _is_path(name: str, value: str) -> bool:
    """Return whether the value is the path of a file with a key or token. A password may look like a path."""
    return _PATH.fullmatch(value) is not None and not re.search("passw|secret", name, re.IGNORECASE)


def _names_one(name: str, value: str, *, is_option: bool) -> bool:
    """Return whether a name with a weak word is that of a variable or option: `HF_TOKEN=x`, `--token x`; `token: x` and
    `key=x` may be any words of a text."""
    words = _words(name)
    is_last = words[-1] != "key" and (words[-1] in _WEAK or _TOKEN.search(words[-1]) is not None)
    if (name.isupper() and len(words) > 1) or (is_option and is_last and words != ["pat"]):
        return True
    return is_last and len(words) > 1 and len(value) >= 8 and any(map(str.isdigit, value))
