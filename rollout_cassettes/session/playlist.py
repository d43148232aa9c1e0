"""Which recorded interaction answers a call."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from rollout_cassettes.cassette import Interaction, Key
from rollout_cassettes.session.numbering import Numbering

Marks = list[str] | None
"""The fingerprint of a live request, a digest for each row; None where it is not compared."""


class Choice(NamedTuple):
    """What answers a call.

    Attributes:
        key: The place in the cassette that the call is about.
        interaction: What was recorded there; None for a miss.
        is_its_own: Whether that is the recording of this very call, and not one lent to it.
    """

    key: Key
    interaction: Interaction | None
    is_its_own: bool = True


class Track:
    """What one adapter recorded at one place, in the order in which the calls started.

    Args:
        left: The interactions by index; None where the cassette lacks one before the last.

    Attributes:
        left: Those that no call took yet.
        recorded: The indices of those that the cassette holds.
    """

    def __init__(self, left: dict[int, Interaction | None]) -> None:
        self.left = left
        self.recorded = [index for index, each in left.items() if each is not None]

    def choose(self, marks: Marks) -> int | None:
        """Return the index of the interaction that a call is about; None where none is left.

        That is the first with the same request: calls may come in another order. Where there is
        none, it is the next one, for the caller to refuse. Where requests are not compared, the
        order is all there is to tell calls apart, and a gap in it is a miss.
        """
        recorded = {index: each for index, each in self.left.items() if each is not None}
        kept = {index: each.manifest.fingerprint for index, each in recorded.items()}
        if marks is not None and marks in kept.values():
            return next(index for index in kept if kept[index] == marks)
        if marks is not None and kept and None not in kept.values():
            return next(iter(kept))
        return next(iter(self.left), None)

    def put_back(self, index: int, interaction: Interaction | None) -> None:
        """Give back what a failed call took."""
        self.left = dict(sorted([*self.left.items(), (index, interaction)]))


class Playlist:
    """Hands out each interaction of a cassette once, to the call that it is the recording of.

    Threads share it. A place is given as the key of the first interaction there.

    Args:
        keys: What the cassette holds.
        read: Gives the interaction at a key.
    """

    def __init__(self, keys: Iterable[Key], read: Callable[[Key], Interaction]) -> None:
        self._read = read
        self._indices: defaultdict[Key, list[int]] = defaultdict(list)
        for key in sorted(keys):
            self._indices[replace(key, index=0)].append(key.index)
        self._tracks: dict[tuple[str, Key], Track] = {}
        self._beyond = Numbering()
        self._lock = threading.Lock()

    def peek(self, adapter: str, place: Key, marks: Marks) -> Choice:
        """Return what answers a call, without taking it."""
        with self._lock:
            track = self._track(adapter, place)
            index = track.choose(marks)
        if index is None:
            return Choice(self._key_beyond(place, self._beyond.next(place)), None)
        return Choice(replace(place, index=index), track.left[index])

    @contextmanager
    def taken(self, adapter: str, place: Key, marks: Marks) -> Iterator[Choice]:
        """Take what answers a call, for good unless the block fails."""
        with self._lock:
            track = self._track(adapter, place)
            index = track.choose(marks)
            interaction = None if index is None else track.left.pop(index)
        if index is None:
            with self._beyond.reserved(place) as number:
                yield Choice(self._key_beyond(place, number), None)
            return
        try:
            yield Choice(replace(place, index=index), interaction)
        except BaseException:
            with self._lock:
                track.put_back(index, interaction)
            raise

    def learn(self, key: Key) -> None:
        """Take note of what was recorded since; a list that is played once has no use for it."""

    def recorded(self, adapter: str, place: Key) -> list[Key]:
        """Return what the cassette holds of an adapter at a place."""
        with self._lock:
            return [replace(place, index=index) for index in self._track(adapter, place).recorded]

    @property
    def steps(self) -> list[int]:
        """The steps of which the cassette holds something."""
        return sorted({place.step for place in self._indices})

    def places(self, step: int) -> list[Key]:
        """Return where the cassette holds something of a step: in which phases, of which ranks."""
        return sorted(place for place in self._indices if place.step == step)

    def adapters(self, place: Key) -> list[str]:
        """Return the names of the adapters that recorded something at a place."""
        return sorted({each.manifest.adapter for each in self._interactions(place)})

    def is_gap(self, key: Key) -> bool:
        """Tell whether the cassette lacks an interaction, and holds a later one of its place."""
        indices = self._indices.get(replace(key, index=0), [])
        return key.index not in indices and key.index < max(indices, default=0)

    def _track(self, adapter: str, place: Key) -> Track:
        """Return an adapter's track; what other adapters recorded at the place is no part of it."""
        if (adapter, place) not in self._tracks:
            interactions = self._interactions(place)
            own = {each.index: each for each in interactions if each.manifest.adapter == adapter}
            foreign = {each.index for each in interactions} - own.keys()
            indices = range(max(own, default=-1) + 1)
            left = {index: own.get(index) for index in indices if index not in foreign}
            self._tracks[adapter, place] = Track(left)
        return self._tracks[adapter, place]

    def _interactions(self, place: Key) -> list[Interaction]:
        keys = [replace(place, index=index) for index in self._indices.get(place, ())]
        return [self._read(key) for key in keys]

    def _key_beyond(self, place: Key, number: int) -> Key:
        """Return the key of a call that goes beyond what is recorded at its place."""
        last = max(self._indices.get(place, ()), default=-1)
        return replace(place, index=last + 1 + number)


class Loop(Playlist):
    """A playlist that goes on for ever.

    A step that was not recorded gets the nearest earlier one, else the nearest later; a step that
    makes more calls than were recorded gets them once more from the start.
    """

    def __init__(self, keys: Iterable[Key], read: Callable[[Key], Interaction]) -> None:
        super().__init__(keys, read)
        self._calls = Numbering()

    def learn(self, key: Key) -> None:
        """Play what was recorded since, too."""
        place = replace(key, index=0)
        with self._lock:
            self._indices[place] = sorted({*self._indices[place], key.index})
            for track in [track for track in self._tracks if track[1] == place]:
                del self._tracks[track]

    def peek(self, adapter: str, place: Key, marks: Marks) -> Choice:
        """Return what answers a call, without taking it."""
        keys = self._nearest(adapter, place)
        if not keys:
            return super().peek(adapter, place, marks)
        return self._choice(keys, place, self._calls.next((adapter, place)))

    @contextmanager
    def taken(self, adapter: str, place: Key, marks: Marks) -> Iterator[Choice]:
        """Take what answers a call, for good unless the block fails."""
        keys = self._nearest(adapter, place)
        if keys:
            with self._calls.reserved((adapter, place)) as number:
                yield self._choice(keys, place, number)
        else:
            with super().taken(adapter, place, marks) as choice:
                yield choice

    def _choice(self, keys: list[Key], place: Key, number: int) -> Choice:
        key = keys[number % len(keys)]
        is_its_own = key.step == place.step and number < len(keys)
        return Choice(key, self._read(key), is_its_own)

    def _nearest(self, adapter: str, place: Key) -> list[Key]:
        """Return what an adapter recorded at the nearest step that has something of it."""
        places = [each for each in [*self._indices] if replace(each, step=place.step) == place]
        places.sort(key=lambda each: (each.step > place.step, abs(each.step - place.step)))
        candidates = (self.recorded(adapter, each) for each in places)
        return next((keys for keys in candidates if keys), [])
