"""Why two cassettes, interactions or batches are not equal, in an assertion that failed."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from rollout_cassettes.cassette import Cassette, Interaction
from rollout_cassettes.errors import CassetteError, spans
from rollout_cassettes.session.difference import Difference, first_difference, tensor_types

_FEW = 10
"""How many tensors of a batch are listed, unless pytest is verbose."""

_DEPTH = 4
"""How deep tensors are looked for, to tell whether a value is a batch."""

_WIDE = 100
"""Among how many parts of a container: others may be long, such as a range, or slow to read."""

_ARRAYS = {"torch": "Tensor", "numpy": "ndarray", "tensordict": "TensorDictBase"}
"""The classes of what makes a batch, by the modules that have them where they are imported."""


def explain(left: object, right: object, *, verbose: bool) -> list[str] | None:
    """Return the lines that explain ``left == right``; None for values of other kinds.

    Args:
        left: What stands left of the ``==``.
        right: What stands right of it.
        verbose: Whether to list every tensor.
    """
    try:
        if isinstance(left, Cassette) and isinstance(right, Cassette):
            told = _of_cassettes(left, right, verbose=verbose)
        elif isinstance(left, Interaction) and isinstance(right, Interaction):
            told = _of_interactions(left, right, verbose=verbose)
        elif _is_batch(left) and _is_batch(right):
            told = _of_values(left, right, verbose=verbose)
            return None if told is None else ["two batches differ", *told]
        else:
            return None
    except CassetteError as error:  # a damaged file, a class that is not imported
        told = [error.what]
    return [f"{left!r} == {right!r}", *(told or ["they are stored alike"])]


def _of_cassettes(left: Cassette, right: Cassette, *, verbose: bool) -> list[str] | None:
    if left.keys != right.keys:
        keys, others = set(left.keys), set(right.keys)
        lines = [f"steps {spans(left.steps)} on the left, {spans(right.steps)} on the right"]
        for side, missing in (("right", keys - others), ("left", others - keys)):
            lines += [f"not on the {side}: {', '.join(map(str, sorted(missing)))}"] * bool(missing)
        return lines
    pairs = zip(left.interactions(), right.interactions(), strict=True)
    different = next(((one, other) for one, other in pairs if one != other), None)
    return different and _of_interactions(*different, verbose=verbose)


def _of_interactions(left: Interaction, right: Interaction, *, verbose: bool) -> list[str] | None:
    if left.key != right.key:
        return [f"{left.key} on the left, {right.key} on the right"]
    for part in ("request", "response"):
        told = _of_values(getattr(left, part), getattr(right, part), verbose=verbose)
        if told is not None:
            return [f"{left.key}, {part}:", *told]
    return None


def _of_values(left: Any, right: Any, *, verbose: bool) -> list[str] | None:
    found = first_difference(left, right)
    if found is None:
        return None
    return [_sentence(found), *_tensors(left, right, verbose=verbose)]


def _sentence(found: Difference) -> str:
    place = f"first difference: {found.path or 'the value itself'}"
    kind = f", in {found.tensor_type}" if found.tensor_type else ""
    if found.index is not None:
        names = ("row", "token")
        named = [f"{name} {part}" for name, part in zip(names, found.index, strict=False)]
        rest = [f"item {found.index[len(names) :]}"] if len(found.index) > len(names) else []
        place = ", ".join([place, *named, *rest])
    elif found.character is not None:
        place = f"{place}, character {found.character}"
    return f"{place}: {found.left} != {found.right}{kind}"


def _tensors(left: Any, right: Any, *, verbose: bool) -> Iterator[str]:
    types, others = tensor_types(left), tensor_types(right)
    paths = [*types, *(path for path in others if path not in types)]
    for path in paths if verbose else paths[:_FEW]:
        one, other = types.get(path, "absent"), others.get(path, "absent")
        yield f"  {path or 'tensor'}: {one if one == other else f'{one} != {other}'}"
    if not verbose and len(paths) > _FEW:
        yield f"  and {len(paths) - _FEW} more tensors: use -v to see them"


def _is_batch(value: object, depth: int = _DEPTH) -> bool:
    """Tell whether a value is a tensor or an array, or holds some."""
    classes = [getattr(sys.modules.get(module), name, ()) for module, name in _ARRAYS.items()]
    if any(isinstance(value, cls) for cls in classes):
        return True
    if not depth or isinstance(value, (str, bytes)):
        return False
    return any(_is_batch(part, depth - 1) for part in islice(_parts(value), _WIDE))


def _parts(value: object) -> Iterator[object]:
    """Give the parts of a container, one after the other."""
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, Sequence):
        yield from value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield getattr(value, field.name, None)
