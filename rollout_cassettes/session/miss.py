"""Why no recording answers a call, and what can be done about it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from rollout_cassettes.cassette import Key
from rollout_cassettes.errors import StepNotRecordedError, named_steps, spans
from rollout_cassettes.session.playlist import Playlist

_NEAREST = 3
_KEEP = "Generate what is missing, and keep it: replay(..., on_miss='record')."


class Miss(NamedTuple):
    """A call that nothing answers.

    Attributes:
        path: The cassette's directory.
        playlist: What the session plays.
        adapter: The name of the adapter that the call came through.
        place: Where the call belongs: the key of the first interaction there.
        key: Which interaction would have answered it.
        is_withheld: Whether the replay has withheld what it asks for, so that it can't be generated.
    """

    path: Path
    playlist: Playlist
    adapter: str
    place: Key
    key: Key
    is_withheld: bool = False

    def error(self) -> StepNotRecordedError:
        """Return the error that says why, and how to mend it."""
        what, fixes = self._explained()
        if self.is_withheld:
            what += " It can't be generated: what it waits for was not handed out."
            fixes = [fix for fix in fixes if fix != _KEEP]
        return StepNotRecordedError(
            what[0].upper() + what[1:],
            fixes=fixes,
            path=self.path,
            step=self.key.step,
            phase=self.key.phase,
            index=self.key.index,
            recorded=self.playlist.steps,
        )

    def _explained(self) -> tuple[str, list[str]]:
        places = self.playlist.places(self.key.step)
        if not places:
            return self._no_such_step()
        if self.place not in places:
            return self._other_place(places)
        if not self.playlist.recorded(self.adapter, self.place):
            return self._other_adapter()
        if self.playlist.is_gap(self.key):
            return self._gap()
        return self._played_already()

    def _no_such_step(self) -> tuple[str, list[str]]:
        recorded = self.playlist.steps
        held = named_steps(recorded)
        if len(recorded) > _NEAREST:
            nearest = sorted(recorded, key=lambda step: abs(step - self.key.step))[:_NEAREST]
            held += f" (the nearest are {spans(nearest)})"
        return f"{self.place} is not in the cassette {self.path}, which holds {held}.", [
            f"Record it: record({self.key.step}, path={str(self.path)!r}).",
            _KEEP,
            "Give the nearest recorded step instead: replay(..., mode='repeat').",
            "Replay other steps only, and let this one go live: replay(steps=...).",
        ]

    def _other_place(self, places: list[Key]) -> tuple[str, list[str]]:
        held = " and ".join(map(str, places))
        return f"{self.place} is not in the cassette {self.path}, which holds {held}.", [
            "Look whether the phase and the rank are what they were in the recorded run.",
            _KEEP,
        ]

    def _other_adapter(self) -> tuple[str, list[str]]:
        others = " and ".join(map(repr, self.playlist.adapters(self.place)))
        what = (
            f"{self.place} was recorded in the cassette {self.path} through the adapter "
            f"{others}, and is asked for through the adapter {self.adapter!r}."
        )
        return what, [
            "Replay through the adapter that recorded it, or give this one its name: name=....",
            _KEEP,
        ]

    def _gap(self) -> tuple[str, list[str]]:
        what = (
            f"{self.key} is not in the cassette {self.path}, which holds later ones of that "
            "step: when it was recorded, this call failed or could not be kept."
        )
        return what, [
            self._again(),
            (
                "Let calls be told apart by what they ask for, not by their order: "
                "function(..., request_of=...), when recording and when replaying."
            ),
        ]

    def _played_already(self) -> tuple[str, list[str]]:
        count = len(self.playlist.recorded(self.adapter, self.place))
        held = "one interaction" if count == 1 else f"{count} interactions"
        played = "it was played already" if count == 1 else "all of them were played already"
        what = (
            f"{self.place} was asked for once more: the cassette {self.path} holds {held} "
            f"of that step, and {played}."
        )
        return what, [
            "Look why the loop makes a call that the recorded one did not make.",
            "Open a new with-block for each run: a session plays an interaction once.",
            self._again(),
            _KEEP,
        ]

    def _again(self) -> str:
        return (
            f"Record it again: record({self.key.step}, path={str(self.path)!r}, "
            "on_existing='overwrite')."
        )
