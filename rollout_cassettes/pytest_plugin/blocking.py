"""Sessions without a cassette: one that refuses live rollouts, and one that lets them be."""

from __future__ import annotations

from pathlib import Path

from rollout_cassettes import patching
from rollout_cassettes.adapters import Adapter
from rollout_cassettes.adapters.adapter import Place
from rollout_cassettes.cassette import Key
from rollout_cassettes.errors import RolloutBlockedError
from rollout_cassettes.patching import Answer, Call, Role
from rollout_cassettes.session import Session, Summary
from rollout_cassettes.session.steps import Steps

_ROLLOUTS = (Role.WHOLE, Role.SUBMIT, Role.SAMPLE)


class _WithoutCassette(Session):
    """A session that has nothing to open, to record or to replay."""

    def summary(self) -> Summary:
        """Return that nothing was done."""
        return Summary()

    def __str__(self) -> str:
        return "no cassette"

    def _open(self) -> None: ...

    def _close(self) -> None: ...

    def _report(self) -> None: ...

    def _prepare_live(self, adapter: Adapter, call: Call, place: Key) -> None: ...

    def _answer(self, adapter: Adapter, call: Call, place: Key) -> Answer:  # noqa: ARG002
        return (yield False)


class Bystander(_WithoutCassette):
    """Stands for the session of a test whose cassette is disabled: all its rollouts go live.

    Args:
        path: Where the cassette would be.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, Steps.parse(None), adapters=[])


class Blocker(_WithoutCassette):
    """Refuses rollouts that no session before it took for its own. It is opened before all others."""

    def __init__(self) -> None:
        super().__init__(Path(), Steps.parse(None), adapters=None)

    def _start(self, adapter: Adapter, call: Call) -> None:
        """Let every run start: it may make no rollout."""

    def _covers(self, adapter: Adapter, call: Call, given: Place, place: Key) -> bool:  # noqa: ARG002
        """Cover every phase, validation too."""
        return True

    def _answer(self, adapter: Adapter, call: Call, place: Key) -> Answer:  # noqa: ARG002
        if patching.is_taken() or call.point.role not in _ROLLOUTS:
            return (yield True)
        raise RolloutBlockedError(
            f"A live rollout was asked for outside a cassette, at {call.point}, and rollouts are "
            "blocked.",
            fixes=[
                "Give the test a cassette: @pytest.mark.rollout_cassette.",
                "In a fixture, open one: with use_rollout_cassette('name'): ...",
                "Let rollouts go live: run without --block-rollouts, and block_rollouts in the ini file.",
            ],
            target=call.point.target,
        )
