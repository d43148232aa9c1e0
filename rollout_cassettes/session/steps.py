"""Which steps a session covers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rollout_cassettes.errors import spans

StepsArgument = None | int | str | Iterable[int] | Callable[[int], object]

_PART = re.compile(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?")


@dataclass(frozen=True)
class Steps:
    """A selection of steps.

    Attributes:
        covers: Tells whether a step is selected.
        listed: The selected steps in order; None where they can't be listed.
        text: The selection as the user would write it.
    """

    covers: Callable[[int], bool]
    listed: list[int] | None
    text: str

    @classmethod
    def parse(cls, steps: StepsArgument) -> Steps:
        """Return the selection that a ``steps=`` argument means.

        Args:
            steps: None for all steps, a step, an iterable of steps, text such as ``"1-5,8"``, or
                a predicate.

        Raises:
            TypeError: If it is none of these.
            ValueError: If a step is negative, or the text can't be read.
        """
        if steps is None:
            return cls(lambda _step: True, None, "all")
        if isinstance(steps, str):
            return cls._listing(_from_text(steps))
        if callable(steps):
            predicate = steps
            return cls(lambda step: bool(predicate(step)), None, _name_of(predicate))
        if isinstance(steps, Iterable):
            return cls._listing(list(steps))
        if _is_step(steps):
            return cls._listing([steps])
        raise TypeError(_expected(steps))

    @classmethod
    def _listing(cls, steps: list[int]) -> Steps:
        for step in steps:
            if not _is_step(step):
                raise TypeError(_expected(step))
            if step < 0:
                raise ValueError(f"a step is 0 or more, got {step}")
        chosen = frozenset(int(step) for step in steps)
        return cls(chosen.__contains__, sorted(chosen), spans(chosen))


def _is_step(value: object) -> bool:
    """Tell whether a value is a whole number, numpy's included, and not a truth value."""
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _from_text(text: str) -> list[int]:
    chosen: list[int] = []
    for part in text.split(","):
        found = _PART.fullmatch(part)
        if found is None:
            raise ValueError(f"steps are written like '1-5,8', got {text!r}")
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first:
            raise ValueError(f"the steps {part.strip()!r} run backwards in {text!r}")
        chosen.extend(range(first, last + 1))
    return chosen


def _name_of(predicate: Callable[..., object]) -> str:
    return f"those that {getattr(predicate, '__name__', predicate)} selects"


def _expected(got: object) -> str:
    return (
        "steps is None for all, a whole number, an iterable of whole numbers, text such as "
        f"'1-5,8', or a predicate; got {got!r}"
    )
