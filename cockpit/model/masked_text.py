"""Finds the secrets in a text, and masks them: the patterns behind `masking.masked`, which loads them when a text first
may hold a secret."""

from __future__ import annotations

import re
from typing import Final

from cockpit.model.secret_signs import (
    FORM_TRIGGERS,
    LONGEST_KEY,
    MASK,
    SHORTEST,
    STRONG,
    TOKEN,
    WEAK,
    is_path,
    is_secret_name,
    is_secret_variable,
    words_of_name,
)

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
_DOTTED_NAME: Final = re.compile(
    r"(?:[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+[A-Za-z]?)(?:[-._](?:[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+[A-Za-z]?))+"
)
"""A name of several words and numbers, such as that of a model: `Llama-3.1-8B-Instruct`."""
_WORD_BEFORE: Final = re.compile(r"(\w{1,32}) \Z")
_RANDOM: Final = re.compile(r"(?=[^\d\s]*\d)(?=[^a-z\s]*[a-z])(?=[^A-Z\s]*[A-Z])[\w+=~.-]{12,512}|[0-9a-f]{24,512}")
"""What looks drawn at random."""


def without_any(text: str) -> str:
    """Return the text with `MASK` in place of each secret in it."""
    # Forms first: a name before them would else be judged by a value that is half of one.
    if "PRIVATE KEY" in text:
        text = _without_private_keys(text)
    if "://" in text and "@" in text:
        text = _OF_ADDRESS.sub(_address, text)
    if '"env' in text:
        text = _ENVIRONMENT.sub(lambda match: match[1] + _VARIABLE.sub(_variable, match[2]), text)
    if any(map(text.lower().__contains__, FORM_TRIGGERS)):
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
    is_name = match[1] == "://" and not (len(match[2]) >= SHORTEST and _RANDOM.fullmatch(match[2]))
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
    if not is_secret_name(name) or is_path(name, value):
        return False
    if name.startswith("AWS_"):
        return True
    if STRONG.search(name):
        return not _PLAIN_WORD.fullmatch(value) or value[0].isdigit()
    return not _PLAIN_WORD.fullmatch(value) and (
        _is_random(value[:256]) or _names_one(name, value, is_option=is_option)
    )


def _is_random(value: str) -> bool:
    return _RANDOM.fullmatch(value) is not None and _DOTTED_NAME.fullmatch(value) is None


def _names_one(name: str, value: str, *, is_option: bool) -> bool:
    """Return whether a name with a weak word is that of a variable or option: `HF_TOKEN=x`, `TOKEN=x`, `--token x`;
    `token: x` and `key=x` may be any words of a text."""
    words = words_of_name(name)
    is_last = words[-1] != "key" and (words[-1] in WEAK or TOKEN.search(words[-1]) is not None)
    if (name.isupper() and (len(words) > 1 or name == "TOKEN")) or (is_option and is_last and words != ["pat"]):
        return True
    return is_last and len(words) > 1 and len(value) >= 8 and any(map(str.isdigit, value))
