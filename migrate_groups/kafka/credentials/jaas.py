"""Parse ``sasl.jaas.config``, the login module and its options, as Kafka's Java clients do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from migrate_groups.errors import InvalidInput

# Kafka's JaasConfig uses a `java.io.StreamTokenizer`, which reads words, and quoted strings with backslash escapes. The
# escapes of the properties file were resolved when the file was parsed.
_TOKEN = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/
    | (?P<word>[A-Za-z_$\u00a0-\U0010ffff][\w.$-]*)
    | "(?P<double>(?:\\.|[^"\\\n])*)" | '(?P<single>(?:\\.|[^'\\\n])*)'
    | (?P<sign>[=;])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS = {"REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JaasEntry:
    """A login module (the name of its Java class) and its options, which include passwords."""

    module: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(text: str) -> JaasEntry:
    """Return the login module and options in ``sasl.jaas.config``. Raises `InvalidInput` if the text is not valid."""
    tokens = list(_tokens(text))
    match tokens:
        case [(module, False), (flag, False), *rest] if flag.upper() in _FLAGS and rest and rest[-1] == (";", True):
            return JaasEntry(module=module, options=_options(rest[:-1]))
    raise InvalidInput(
        'sasl.jaas.config is not valid; expected login module, required, options such as username="…", and ; at the end'
    )


def _options(tokens: list[tuple[str, bool]]) -> dict[str, str]:
    options = {}
    for at in range(0, len(tokens), 3):
        match tokens[at : at + 3]:
            case [(name, False), ("=", True), (value, False)]:
                options[name] = value
            case _:
                raise InvalidInput(
                    'sasl.jaas.config has a second login module, or an option that is not name="value": correct it'
                )
    return options


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each token, and whether it is a sign (``=`` or ``;``). Strings are unquoted and unescaped."""
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise InvalidInput(
                f"sasl.jaas.config can't be read from character {at + 1} on: close an open quote, or put the value in "
                "quotes"
            )
        at = found.end()
        match found.lastgroup:
            case "word":
                yield found["word"], False
            case "double" | "single" as quoted:
                yield _ESCAPE.sub(_unescaped, found[quoted]), False
            case "sign":
                yield found["sign"], True


def _unescaped(escape: re.Match[str]) -> str:
    escaped = escape[1]
    return chr(int(escaped, 8)) if escaped.isdecimal() and escaped < "8" else _LETTERS.get(escaped, escaped)
