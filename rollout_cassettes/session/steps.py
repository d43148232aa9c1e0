"""Which steps a session covers."""

from __future__ import annotations

import itertools
import operator
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex

from rollout_cassettes.errors import spans

if TYPE_CHECKING:
    from typing_extensions import TypeIs

StepsArgument = SupportsIndex | str | Iterable[SupportsIndex] | Callable[[int], object] | None

_PART = re.compile(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", re.ASCII)
_MOST = 1_000_000


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
            ValueError: If a step is negative, the text can't be read, or a million steps are
                listed.
        """
        if steps is None:
            return cls(lambda _step: True, None, "all")
        if isinstance(steps, (bool, bytes, os.PathLike)):
            raise _unexpected(steps)
        if isinstance(steps, str):
            return cls._listing(_from_text(steps))
        if callable(steps):
            predicate = steps
            return cls(lambda step: bool(predicate(step)), None, _name_of(predicate))
        if _can_iterate(steps):
            return cls._listing(steps)
        if isinstance(steps, SupportsIndex):
            return cls._listing([steps])
        raise _unexpected(steps)

    @classmethod
    def _listing(cls, steps: Iterable[SupportsIndex]) -> Steps:
        listed = list(itertools.islice(steps, _MOST + 1))
        if len(listed) > _MOST:
            raise ValueError(
                f"steps lists more than {_MOST} steps: give None for all of them, or a predicate "
                "such as lambda step: step >= 10"
            )
        chosen = frozenset(map(step_number, listed))
        return cls(chosen.__contains__, sorted(chosen), spans(chosen))


def step_number(value: Any) -> int:
    """Return a step as a plain number, numpy's and torch's whole numbers included.

    Raises:
        TypeError: If it is no whole number; a truth value is none.
        ValueError: If it is negative.
    """
    refusal = f"a step is a whole number, 0 or more; got {value!r}"
    if isinstance(value, bool):
        raise TypeError(refusal)
    try:
        step = operator.index(value)
    except TypeError as error:  # a tensor of floats has the method, and refuses
        raise TypeError(refusal) from error
    if step < 0:
        raise ValueError(refusal)
    return step


def _can_iterate(steps: object) -> TypeIs[Iterable[SupportsIndex]]:
    try:
        iter(steps)  # type: ignore[call-overload]
    except TypeError:  # also an array or a tensor of no dimension, though its type is iterable
        return False
    return True


def _from_text(text: str) -> Iterable[int]:
    ranges: list[range] = []
    for part in text.split(","):
        found = _PART.fullmatch(part)
        if found is None:
            hint = "; a path is given as path=..." if re.search(r"[a-z/]", text) else ""
            raise ValueError(f"steps are written like '1-5,8', got {text!r}{hint}")
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first:
            raise ValueError(f"the steps {part.strip()!r} run backwards in {text!r}")
        ranges.append(range(first, last + 1))
    return itertools.chain.from_iterable(ranges)


def _name_of(predicate: Callable[..., object]) -> str:
    return f"selected by {getattr(predicate, '__name__', predicate)}"


def _unexpected(got: object) -> TypeError:
    hint = "; a path is given as path=..." if isinstance(got, os.PathLike) else ""
    return TypeError(
        "steps is None for all, a whole number, an iterable of whole numbers, text such as "
        f"'1-5,8', or a predicate; got {got!r}{hint}"
    )
