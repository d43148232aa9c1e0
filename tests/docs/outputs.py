"""Compares what a block printed with what its page says that it prints."""

from __future__ import annotations

import re

_TIME = r"\d+ h \d\d m|\d+ m \d\d s|\d+(?:\.\d+)? ?(?:ms|s)\b"
_SIZE = r"\d+(?:\.\d+)? ?(?:B|bytes|kB|MB|GB)\b"
_FRACTION = r"-?\d+\.\d+"

_VARIABLE = re.compile(
    rf"(?P<time>{_TIME})|(?P<size>{_SIZE})|(?P<fraction>{_FRACTION})|(?P<dots>\.\.\.)"
    r"|(?P<gap>  +)|(?P<rule>──+)"
)
_PATTERNS = {"time": _TIME, "size": _SIZE, "fraction": _FRACTION, "gap": " +", "rule": "─+"}


def matches(expected: str, printed: str, *, amounts_vary: bool) -> bool:
    """Tell whether the output is the expected one.

    Args:
        expected: What the page says. `...` stands for anything in a line; alone in a line it
            stands for any lines.
        printed: What the block printed.
        amounts_vary: Let a duration stand for any duration, a size for any size, and a decimal
            fraction for any decimal fraction; columns may then be wider or narrower. Whole numbers
            without a unit are always compared.
    """
    lines = [_line(line.rstrip(), amounts_vary=amounts_vary) for line in expected.splitlines()]
    shown = "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines())
    return re.fullmatch("".join(lines), shown) is not None


def _line(line: str, *, amounts_vary: bool) -> str:
    if line == "...":
        return r"(?:.*\n)*"
    pattern, end = "", 0
    for found in _VARIABLE.finditer(line):
        kind = found.lastgroup
        pattern += re.escape(line[end : found.start()])
        if kind == "dots":
            pattern += ".*"
        elif amounts_vary:
            pattern += f"(?:{_PATTERNS[kind]})"
        else:
            pattern += re.escape(found[0])
        end = found.end()
    return pattern + re.escape(line[end:]) + r"\n"
