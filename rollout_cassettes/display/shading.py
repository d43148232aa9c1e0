"""How sure the model was of a token, as a shade."""

from __future__ import annotations

import bisect
import math

LIMITS = (0.01, 0.1, 0.5, 0.9)
"""Probabilities between the shades, from the darkest to none."""

TERMINAL = ("black on #ff8f70", "black on #ffb59c", "black on #ffd6c6", "black on #ffeee7", "")
"""A style of rich for each shade: dark on light, whatever the terminal's own colours are."""

HTML = (0.7, 0.45, 0.25, 0.1, 0.0)
"""How opaque each shade is, over the page's own background."""

LEGEND = ("<1%", "<10%", "<50%", "<90%", "")


def shade(log_prob: float) -> int:
    """Return the number of the shade of a token, 0 for the least probable.

    Args:
        log_prob: Its log-probability, in nats; the last shade (none) where it is unknown.
    """
    if math.isnan(log_prob):
        return len(LIMITS)
    return bisect.bisect_right(LIMITS, math.exp(min(log_prob, 0.0)))
