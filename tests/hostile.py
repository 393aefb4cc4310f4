"""Text that attacks: shared by every suite that shows, stores or reads what comes from outside."""

from __future__ import annotations

UNSEEN = {
    "escape sequence": "a\x1b[31mred\x1b[0m",
    "window title": "a\x1b]0;owned\x07",
    "clipboard (OSC 52)": "a\x1b]52;c;cm0gLXJmIC8=\x07",
    "hyperlink (OSC 8)": "a\x1b]8;;http://evil.example\x1b\\here",
    "device control string": "a\x1bP+q544e\x1b\\",
    "newline": "a\nb",
    "carriage return": "good\rEVIL",
    "tab": "a\tb",
    "nul": "a\0b",
    "bell": "a\x07b",
    "backspace": "a\x08b",
    "delete": "a\x7fb",
    "vertical tab": "a\x0bb",
    "form feed": "a\x0cb",
    "C1 control sequence introducer": "a\x9b31mb",
    "C1 next line": "a\x85b",
    "line separator": "a\u2028b",
    "paragraph separator": "a\u2029b",
    "bidi override": "a\u202eb",
    "bidi isolate": "a\u2066b",
    "right-to-left mark": "a\u200fb",
    "zero-width space": "a\u200bb",
    "zero-width joiner": "a\u200db",
    "byte order mark": "a\ufeffb",
    "soft hyphen": "a\xadb",
    "no-break space": "a\xa0b",
    "ideographic space": "a\u3000b",
    "hangul filler": "a\u3164b",
    "combining grapheme joiner": "a\u034fb",
    "variation selector supplement": "a\U000e0100b",
    "tag characters": "a\U000e0041b",
    "private use": "a\ue000b",
    "unassigned": "a\u0378b",
    "noncharacter": "a\uffffb",
    "lone high surrogate": "a\ud800b",
    "lone low surrogate": "a\udc80b",
}
"""Contains something that draws nothing, or moves what stands around it."""

SEEN = {
    "markup": "[bold]",
    "closing markup": "a[/]",
    "markup link": "[link=http://evil.example]x[/link]",
    "textual action": "[@click=app.quit]x[/]",
    "broken markup": "a[/bold][",
    "format braces": "a{0}{}{x.__class__}",
    "format percent": "a%s%n%(x)s%",
    "template": "a${HOME}$HOME",
    "single quote": "a' OR '1'='1",
    "double quote": 'a"; DROP TABLE job; --',
    "comment": "a --",
    "shell metacharacters": "a;b&c|d<e>f`g`$(h)*?!~#",
    "backslash": "a\\x1b\\n\\",
    "yaml": "a: {b: [c, *d, &e]}",
    "json": '{"a": null}',
    "csv formula": "=cmd|'x'!A1",
    "path": "..",
    "combining marks": "e\u0301\u0302\u0303\u0304",
    "wide": "训练任务",
    "right to left": "עברית",
    "emoji": "🚀",
    "emoji with variation selector": "a❤️",
    "word that YAML reads": "null",
    "number": "1e3",
}
"""Nothing in it is invisible, but something along the way might interpret it."""

LONG = {
    "64 characters": "a" * 64,
    "ten thousand characters": "b" * 10_000,
    "wide and long": "训" * 300,
}

HOSTILE = {**UNSEEN, **SEEN, **LONG}
