"""Seeing which fields of a response are read, without keeping anybody from reading them.

What can't be told apart counts as read: whoever lists the names of all fields, or copies all of
them, has read them all. So a field that was not read is one that nobody missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from rollout_cassettes.errors import CassetteError

Saw = Callable[[Iterable[str]], None]
"""Takes note of fields that were read."""


def watched(value: Any, saw: Saw) -> Any:
    """Return a response of which it is seen what is read.

    A dict becomes a subclass of dict. A TensorDict stays what it is.

    Raises:
        CassetteError: If it is neither, or has keys that name no fields.
    """
    kind = type(value)
    if kind is dict and all(type(key) is str for key in value):
        return Watched(value, saw)
    if (kind.__module__.partition(".")[0], kind.__name__) == ("tensordict", "TensorDict"):
        value._tensordict = Watched(value._tensordict, saw)  # noqa: SLF001 - all reads go through it
        return value
    raise CassetteError(
        f"Which fields of a {kind.__name__} are read can't be observed"
        + (": it has keys that are no strings." if kind is dict else "."),
        fixes=[
            "Let the rollout return a dict with strings as keys, or a TensorDict.",
            "Replay without track_reads, and name the fields to keep: shrink --fields a,b.",
        ],
    )


class Watched(dict[Any, Any]):
    """A dict that tells which of its items are read.

    Args:
        values: The items.
        saw: Told the keys that are read, of those that were there at first.
    """

    def __init__(self, values: dict[Any, Any], saw: Saw) -> None:
        super().__init__(values)
        self._fields = frozenset(values)
        self._saw = saw

    def _one(self, key: Any) -> None:
        if key in self._fields:
            self._saw([key])

    def _all(self) -> None:
        self._saw(self._fields)

    def __getitem__(self, key: Any) -> Any:
        self._one(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._one(key)
        return super().__contains__(key)

    def __delitem__(self, key: Any) -> None:
        self._one(key)  # it must be there
        super().__delitem__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        """Return an item, or the default."""
        self._one(key)
        return super().get(key, default)

    def pop(self, key: Any, *default: Any) -> Any:
        """Remove an item and return it."""
        self._one(key)
        return super().pop(key, *default)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Return an item, which is the default if there is none yet."""
        self._one(key)
        return super().setdefault(key, default)

    def __bool__(self) -> bool:
        return super().__len__() > 0

    def __iter__(self) -> Iterator[Any]:
        self._all()
        return super().__iter__()

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return dict, (self.copy(),)

    # ---- what reads all of it

    def keys(self) -> Any:
        """Return all keys."""
        self._all()
        return super().keys()

    def values(self) -> Any:
        """Return all values."""
        self._all()
        return super().values()

    def items(self) -> Any:
        """Return all items."""
        self._all()
        return super().items()

    def copy(self) -> dict[Any, Any]:
        """Return a plain dict of all items."""
        self._all()
        return super().copy()

    def popitem(self) -> Any:
        """Remove the last item and return it."""
        self._all()
        return super().popitem()

    def __reversed__(self) -> Iterator[Any]:
        self._all()
        return super().__reversed__()

    def __len__(self) -> int:
        self._all()
        return super().__len__()

    def __repr__(self) -> str:
        self._all()
        return super().__repr__()

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def __eq__(self, other: object) -> bool:
        return self.copy() == other

    def __ne__(self, other: object) -> bool:
        return self.copy() != other

    __hash__ = None


def refuse(adapter: str, why: str) -> NoReturn:
    """Refuse to track the reads of an adapter's responses.

    Raises:
        CassetteError: Saying why.
    """
    raise CassetteError(
        f"Which fields of its responses are read can't be observed for {adapter}: {why}.",
        fixes=["Replay without track_reads, and name the fields to keep: shrink --fields a,b."],
    )
