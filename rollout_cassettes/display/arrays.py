"""How arrays are named: ``f32[8,128]``."""

from __future__ import annotations

from collections.abc import Iterable

_ITEM_NAMES = {"float": "f", "int": "i", "uint": "u", "bfloat": "bf"}


def array_type(dtype: str, shape: Iterable[object]) -> str:
    """Write a dtype and a shape: ``f32[2,3]``.

    Args:
        dtype: The dtype's name, as torch and numpy have it: ``"float32"``.
        shape: The sizes; what is no number, such as the name of a ragged one, as it is.
    """
    stem = dtype.rstrip("0123456789")
    short = _ITEM_NAMES.get(stem, stem) + dtype.removeprefix(stem)
    return f"{short}[{','.join(map(str, shape))}]"
