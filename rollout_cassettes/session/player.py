"""The session that replays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from rollout_cassettes.adapters import Adapter, Exchange, Place
from rollout_cassettes.cassette import Cassette, Interaction, Key
from rollout_cassettes.cassette.cassette import not_found, not_recorded
from rollout_cassettes.errors import UnplayedError, spans
from rollout_cassettes.patching import Answer, Call, Half
from rollout_cassettes.session import matching, options, random_state
from rollout_cassettes.session.session import Session, logger, steps_of
from rollout_cassettes.session.steps import Steps, StepsArgument
from rollout_cassettes.session.summary import Summary
from rollout_cassettes.session.tape import Tape


def replay(
    steps: StepsArgument = None,
    mode: Literal["cache", "repeat"] = "cache",
    *,
    path: str | os.PathLike[str] | None = None,
    adapters: Iterable[Adapter] | Adapter | None = None,
    on_miss: Literal["error", "generate", "record"] = "error",
    on_mismatch: Literal["error", "warn"] = "error",
    on_unplayed: Literal["ignore", "warn", "error"] = "ignore",
    restore_rng: bool = True,
    device: Any = None,
) -> Player:
    """Hand back what was recorded, while a with-block is open; the rollout engine is not called.

    Args:
        steps: The steps to replay: None for all, a number, numbers, ``"1-5,8"``, or a predicate.
            Calls of other steps go live.
        mode: ``"cache"`` replays exactly the step; ``"repeat"`` the nearest earlier step where it
            is not recorded, else the nearest later, cycling through its prompts where the live
            request has more of them.
        path: The cassette's directory; by default ``$ROLLOUT_CASSETTES_PATH``, else
            ``cassettes/default``.
        adapters: What to intercept; by default every framework that is, or gets, imported, and
            every function marked with :func:`rollout_cassettes.adapters.function`.
        on_miss: What to do where a step is not recorded: raise, generate it live, or generate it
            and record it into the same cassette.
        on_mismatch: What to do where the live prompts are not the recorded ones: raise, or log a
            warning and replay all the same. Repeat mode does not compare them.
        on_unplayed: What to do at the end where recorded steps were selected and never asked for.
        restore_rng: Put random generators where the live call left them.
        device: Where tensors go; None for the device they were recorded on, or the CPU where that
            one is missing.

    Raises:
        ValueError: If an option's value is not one of those listed.
        TypeError: If an option is of the wrong type.
    """
    return Player(
        options.cassette_path(path),
        Steps.parse(steps),
        options.adapters(adapters),
        mode=options.word("mode", mode, options.MODES),
        on_miss=options.word("on_miss", on_miss, options.ON_MISS),
        on_mismatch=options.word("on_mismatch", on_mismatch, options.ON_MISMATCH),
        on_unplayed=options.word("on_unplayed", on_unplayed, options.ON_UNPLAYED),
        restore_rng=restore_rng,
        device=device,
    )


class Player(Session):
    """Answers the calls of its steps from a cassette. Made by :func:`replay`."""

    def __init__(
        self,
        path: Path,
        steps: Steps,
        adapters: list[Adapter] | None,
        *,
        mode: str,
        on_miss: str,
        on_mismatch: str,
        on_unplayed: str,
        restore_rng: bool,
        device: Any,
    ) -> None:
        super().__init__(path, steps, adapters)
        self._mode = mode
        self._on_miss = on_miss
        self._on_mismatch = on_mismatch
        self._on_unplayed = on_unplayed
        self._restore_rng = restore_rng
        self._device = device
        self._cassette: Cassette | None = None
        self._tape: Tape | None = None
        self._held: dict[str, list[Any]] = {}
        self._played: dict[Key, float] = {}
        self._sources: set[Key] = set()
        self._generated: set[Key] = set()
        self._missed: set[Key] = set()

    # ---- what happened

    def summary(self) -> Summary:
        """Return what was replayed so far, and what was not."""
        recorded = self._tape.recorded if self._tape else {}
        faults = self._tape.faults if self._tape else {}
        known = self._cassette.keys if self._cassette else []
        absent = set(self.selection.listed or ()) - {key.step for key in known}
        missing = absent | {key.step for key in self._missed}
        return Summary(
            played=steps_of(self._played),
            generated=steps_of(self._generated),
            recorded=steps_of(recorded),
            missing=sorted(missing - {key.step for key in recorded}),
            unplayed=steps_of(self._unplayed(known)),
            faults={str(key): cause for key, cause in faults.items()},
            seconds=sum(self._played.values()),
            nbytes=self._tape.nbytes if self._tape else 0,
        )

    def __str__(self) -> str:
        return self.summary().of_replay()

    def _unplayed(self, known: Iterable[Key]) -> list[Key]:
        return [k for k in known if self.selection.covers(k.step) and k not in self._sources]

    # ---- life

    def _open(self) -> None:
        if self._on_miss == "record":
            self._tape = Tape(self.path, "zstd", strict=False, metadata={})
        self._cassette = Cassette(self.path, device=self._device, strict=True)
        if not self._cassette.keys and self._on_miss == "error":
            raise not_found(self.path)

    def _close(self, *, failed: bool) -> None:
        if self._tape is not None:
            self._tape.close()
        logger.info("%s: %s", self.path, self)
        unplayed = self.summary().unplayed
        if not unplayed or self._on_unplayed == "ignore" or failed:
            return
        error = UnplayedError(
            f"The steps {spans(unplayed)} of {self.path} were never asked for.",
            fixes=[
                "Look whether the loop ended early, or whether its steps are counted differently.",
                "Select the steps that are meant: replay(steps=...).",
                "Record the cassette again without them.",
            ],
            path=self.path,
            steps=unplayed,
        )
        if self._on_unplayed == "error":
            raise error
        logger.warning("%s", error)

    # ---- answering

    def _answer(self, adapter: Adapter, call: Call, place: Place) -> Answer:
        submits = call.point.half is Half.SUBMIT
        key = self._next(place) if submits else self._reserve(place)
        source = self._find(key)
        if source is None:
            return (yield from self._miss(adapter, call, key))
        interaction = self._interaction(source)
        if submits:
            return self._withhold(adapter, call, key, interaction)
        return self._play(adapter, call, key, interaction)

    def _find(self, key: Key) -> Key | None:
        """Return the interaction that answers for a key; None if there is none."""
        assert self._cassette is not None  # noqa: S101 - an open session has one
        known = [
            other
            for other in self._cassette.keys
            if (other.phase, other.rank) == (key.phase, key.rank)
        ]  # fmt: skip
        if key in known:
            return key
        if self._mode == "cache" or not known:
            return None
        earlier = [other for other in known if other.step <= key.step]
        return earlier[-1] if earlier else known[0]

    def _interaction(self, source: Key) -> Interaction:
        assert self._cassette is not None  # noqa: S101 - an open session has one
        interaction = self._cassette.interaction(source)
        if interaction.manifest.tensors.compression is None:
            interaction.verify()  # reading a compressed file verifies it
        return interaction

    def _miss(self, adapter: Adapter, call: Call, key: Key) -> Answer:
        assert self._cassette is not None  # noqa: S101 - an open session has one
        self._missed.add(key)
        if self._on_miss == "error":
            raise not_recorded(self.path, key, self._cassette.steps)
        logger.info("%s is not in %s: it is generated live", key, self.path)
        if self._tape is None:
            result = yield
        elif call.point.half is Half.SUBMIT:
            return (yield from self._tape.submit(adapter, call, key))
        else:
            result = yield from self._tape.take(adapter, call, key)
        if call.point.half is not Half.SUBMIT and self._tape is None:
            self._generated.add(key)
        return result

    def _withhold(self, adapter: Adapter, call: Call, key: Key, interaction: Interaction) -> Any:
        request = adapter.request(call)
        with self._lock:
            held = self._held.setdefault(adapter.name, [])
            held.append(request)
            submitted = list(held)
        self._compare(adapter, key, interaction, submitted)
        self._advance_random(Half.SUBMIT, key, interaction)
        return adapter.withhold(call)

    def _play(self, adapter: Adapter, call: Call, key: Key, interaction: Interaction) -> Any:
        if call.point.half is Half.WHOLE:
            submitted = [adapter.request(call)]
            self._compare(adapter, key, interaction, submitted[0])
        else:
            with self._lock:
                submitted = self._held.pop(adapter.name, [])
        recorded = Exchange(interaction.request, interaction.response)
        shift = None if self._mode == "cache" else key.step - interaction.step
        result = adapter.restore(call, recorded, submitted, shift)
        self._advance_random(call.point.half, key, interaction)
        with self._lock:
            self._played[key] = interaction.manifest.seconds
            self._sources.add(interaction.key)
        logger.info("replayed %s from %s", key, interaction.path)
        return result

    def _compare(self, adapter: Adapter, key: Key, interaction: Interaction, live: Any) -> None:
        """Refuse a recording of another request, or warn of it."""
        recorded = interaction.manifest.fingerprint
        rows = adapter.rows(live)
        if self._mode == "repeat" or recorded is None or rows is None:
            return
        if matching.fingerprint(rows) == recorded:
            return
        error = matching.mismatch(self.path, key, _rows(adapter, interaction), rows)
        if self._on_mismatch == "error":
            raise error
        logger.warning("%s", error.what)

    def _advance_random(self, half: Half, key: Key, interaction: Interaction) -> None:
        """Put the generators where the live call left them, if this is the very step."""
        if self._restore_rng and key == interaction.key:
            random_state.restore(interaction.random_state.get(half.value, {}))


def _rows(adapter: Adapter, interaction: Interaction) -> Sequence[Any]:
    return adapter.rows(interaction.request) or ()
