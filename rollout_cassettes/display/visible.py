"""Recorded text, made safe to show: a model may write what moves a terminal's cursor."""

from __future__ import annotations

_CONTROLS: dict[int, int] = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
_CONTROLS[0x7F] = 0x2421
_CONTROLS.update((code, 0xFFFD) for code in [*range(0x80, 0xA0), *range(0xD800, 0xE000)])


def visible(text: str) -> str:
    r"""Return a text with pictures in the place of control characters, apart from ``\n`` and ``\t``."""
    return text.translate(_CONTROLS)
