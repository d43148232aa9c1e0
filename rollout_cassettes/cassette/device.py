"""The device that a user asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_EVERYWHERE = frozenset({"cpu", "meta"})


def device_named(value: str | torch.device | None) -> torch.device | None:
    """Return the device that is meant; None where none is asked for.

    Raises:
        ValueError: If torch knows no such device, or this machine has none.
    """
    if value is None:
        return None
    import torch  # noqa: PLC0415 - only where a device is asked for

    try:
        found = torch.device(value)
    except RuntimeError as error:
        raise ValueError(f"device is one that torch knows; got {value!r} ({error})") from error
    present = torch.accelerator.current_accelerator()
    count = torch.accelerator.device_count()
    is_here = present is not None and found.type == present.type and (found.index or 0) < count
    if found.type not in _EVERYWHERE and not is_here:
        has = "no accelerator" if present is None else f"{count} of {present.type}"
        raise ValueError(f"device={value!r} is not on this machine: it has {has}")
    return found
