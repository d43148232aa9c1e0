"""What verl's ``skip`` section asks for, in this library's terms.

Source: verl 0.9.1, ``verl/utils/skip/config.py``, ``verl/utils/skip/rollout_skip.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from rollout_cassettes.adapters import Adapter, VerlFullyAsync, VerlV0, VerlV1
from rollout_cassettes.errors import shorten
from rollout_cassettes.session import options

__all__ = ["ReplayOptions", "from_skip"]

DIRECTORY = "rollout-cassettes"
"""The directory in the ``dump_dir``. verl's own always have an underscore in their names."""

_ADAPTERS: dict[str, type[Adapter]] = {
    "rollout": VerlV0,
    "rollout_tq": VerlV1,
    "async_rollout": VerlFullyAsync,
}
_DEFAULT_DUMP_DIR = "~/.verl/rollout_dump"


class ReplayOptions(TypedDict):
    """Keyword arguments for :func:`rollout_cassettes.replay`."""

    steps: list[int]
    mode: options.Mode
    path: Path
    adapters: Adapter
    on_miss: options.OnMiss


def from_skip(skip: Mapping[str, Any], *, name: str | None = None) -> ReplayOptions:
    """Turn verl's ``skip`` section into arguments for :func:`rollout_cassettes.replay`.

    Steps that are recorded are replayed, others are generated and recorded, which is what
    SkipManager's ``cache`` does::

        with rc.replay(**rc.verl_config.from_skip(config.skip)): ...

    The cassette is ``{dump_dir}/rollout-cassettes/{name}/{adapter}``, without the name where none
    is given. Switch verl's own section off, or SkipManager answers too.

    Args:
        skip: ``config.skip``: of OmegaConf's, a dict, or verl's ``SkipManagerConfig``.
        name: Tells runs apart that share a ``dump_dir``, such as their experiment's name.

    Raises:
        TypeError: If it is no such section, or an option of it is of the wrong type.
        ValueError: If not just one of ``rollout``, ``rollout_tq`` and ``async_rollout`` is
            enabled, or its action is neither ``cache`` nor ``repeat``.
    """
    section = _only_enabled(_sections(skip))
    chosen, adapter = _sections(skip)[section], _ADAPTERS[section]()
    where = f"skip.{section}"
    dump_dir = chosen.get("dump_dir", _DEFAULT_DUMP_DIR)
    if not isinstance(dump_dir, str) or not dump_dir:
        raise TypeError(f"{where}.dump_dir is a path as text; got {dump_dir!r}")
    root = Path(dump_dir).expanduser().absolute() / DIRECTORY
    return ReplayOptions(
        steps=_steps(chosen.get("steps", ()), where),
        mode=options.word(f"{where}.action", chosen.get("action", "cache"), options.Mode),
        path=root / adapter.name if name is None else root / name / adapter.name,
        adapters=adapter,
        on_miss="record",
    )


def _sections(skip: Any) -> dict[str, Mapping[str, Any]]:
    if not isinstance(skip, Mapping) or not any(name in skip for name in _ADAPTERS):
        known = ", ".join(_ADAPTERS)
        raise TypeError(f"from_skip takes config.skip, with {known}; got {shorten(skip)}")
    return {name: skip[name] for name in skip if isinstance(skip[name], Mapping)}


def _only_enabled(sections: Mapping[str, Mapping[str, Any]]) -> str:
    enabled = [
        name
        for name, section in sections.items()
        if options.truth(f"skip.{name}.enable", section.get("enable", False))
    ]
    known = " or ".join(f"skip.{name}" for name in _ADAPTERS)
    if len(enabled) != 1:
        those = f"{', '.join(enabled)} are" if enabled else "none is"
        raise ValueError(f"one of {known} is to be enabled; {those}")
    if enabled[0] not in _ADAPTERS:
        raise ValueError(f"one of {known} is to be enabled; skip.{enabled[0]} is, which is unknown")
    return enabled[0]


def _steps(steps: Any, where: str) -> list[int]:
    is_list = isinstance(steps, Sequence) and not isinstance(steps, str)
    if not is_list or not all(type(step) is int for step in steps):
        raise TypeError(f"{where}.steps is a list of whole numbers; got {shorten(steps)}")
    return list(steps)
