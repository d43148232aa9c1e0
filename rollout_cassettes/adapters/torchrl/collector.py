"""The adapter for torchrl's ``LLMCollector``.

Its iterator calls ``rollout``, which is one of three methods, and then hands the batch to the training
loop or writes it to a replay buffer. The methods draw prompts (``env.reset``), let the policy
generate, and step the environment, which computes rewards and draws the next prompts where dialogs
are done. What stands between two calls is in the collector: the prompts that wait (``_shuttle``),
and, where it yields completed trajectories, the dialogs that are not yielded yet.

Source: torchrl 0.14.1, ``torchrl/collectors/llm/base.py``; ``torchrl/collectors/_single.py`` for
``iterator``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rollout_cassettes.adapters.adapter import Adapter, Exchange, Place
from rollout_cassettes.adapters.excerpt import Excerpt, Group, Skeletons
from rollout_cassettes.adapters.torchrl import dialogs, slots, turns
from rollout_cassettes.adapters.torchrl.prompts import column_keys, prompts
from rollout_cassettes.adapters.torchrl.reading import trajectories
from rollout_cassettes.cassette.key import TRAIN
from rollout_cassettes.errors import CassetteError
from rollout_cassettes.patching import Call, EntryPoint, Role
from rollout_cassettes.trajectories import Trajectory

_COLLECTOR = "torchrl.collectors.llm.base:LLMCollector"
_REMOTE = "torchrl.collectors.llm.ray_collector:RayLLMCollector"

_TURNS = f"{_COLLECTOR}._rollout_all"
_DIALOGS = f"{_COLLECTOR}._rollout_yield_trajs"
_IN_FLIGHT = f"{_COLLECTOR}._rollout_yield_trajs_async"
_STARTS = tuple(f"{_REMOTE}.{method}" for method in ("__iter__", "next", "start"))


class TorchrlCollector(Adapter):
    """Records and replays the batches that torchrl's ``LLMCollector`` collects."""

    name = "torchrl"
    step_kind = "collector batch"
    entry_points = (
        *(
            EntryPoint.to("torchrl", target, framework="torchrl", overrides=True)
            for target in (_TURNS, _DIALOGS, _IN_FLIGHT)
        ),
        *(
            EntryPoint.to("torchrl", target, framework="torchrl", role=Role.START)
            for target in _STARTS
        ),
    )
    distributions = ("torchrl", "tensordict", "torch")
    phases = frozenset({TRAIN})

    def place(self, call: Call) -> Place:
        """Return the number of the batch, counted from 0 by the collector's iterator."""
        return Place(max(call.args[0]._iter, 0))

    def request(self, call: Call) -> dict[str, Any]:
        """Return the prompts that wait, and how far the collector is; the first are drawn here."""
        collector = call.args[0]
        asked = {"prompts": self._prompts(call), "frames": collector._frames}
        if call.point.target == _TURNS:
            shape = turns.Shape.of(collector)._asdict()
            return asked | {"shape": shape, "columns": column_keys(collector.env)}
        if call.point.target == _DIALOGS:
            return asked | {"dialogs": dialogs.before(collector)}
        return asked

    def capture(self, call: Call, result: Any, submitted: Sequence[Any]) -> dict[str, Any]:
        """Record what was returned, the turns that were dropped, and the dialogs under way.

        Raises:
            CassetteError: If the batch is not made of whole turns of the environment.
        """
        collector = call.args[0]
        dropped = collector._frames - submitted[0]["frames"]
        response = {"output": result, "dropped": dropped}
        if call.point.target == _TURNS:
            turns.check(collector, result)
        if call.point.target == _DIALOGS:
            response["dialogs"] = dialogs.after(collector)
        return response

    def restore(
        self, call: Call, recorded: Exchange, submitted: Sequence[Any], shift: int | None
    ) -> Any:
        """Return what was returned, and let the environment draw the prompts that it drew."""
        collector, response = call.args[0], recorded.response
        output, is_turns = response["output"], call.point.target == _TURNS
        if shift is not None and is_turns:
            return turns.fitted(collector, output, turns.Shape(**recorded.request["shape"]))
        if shift is not None:
            return output
        if is_turns:
            waited = len(recorded.request["prompts"])
            turns.replay(collector, output, waited, recorded.compare)
        elif call.point.target == _DIALOGS:
            dialogs.replay(collector, recorded, submitted[0])
        collector._frames += response["dropped"]
        return output

    def rows(self, request: Any) -> Sequence[Mapping[str, Any]] | None:
        """Return the prompts; None where the environments draw them in other processes."""
        rows: list[dict[str, Any]] | None = request["prompts"]
        return rows

    def start(self, call: Call) -> Iterable[Place]:
        """Refuse a collector whose rollouts are made in another process."""
        raise CassetteError(
            "torchrl's RayLLMCollector makes its rollouts in a Ray actor, where a with-block of this "
            "process records and replays nothing.",
            fixes=[
                "Use LLMCollector, in the process that trains.",
                "Or open the session in the actor, around the LLMCollector that it iterates.",
                "Or leave the with-block out.",
            ],
        )

    def trajectories(self, recorded: Exchange) -> list[Trajectory]:
        """Return a trajectory for each dialog turn."""
        return trajectories(recorded.response["output"])

    def groups(self, recorded: Skeletons) -> list[Group]:
        """Return the slots of the environment that share their prompts."""
        return slots.groups(recorded)

    def excerpt(
        self,
        recorded: Skeletons,
        groups: Sequence[Group],
        elsewhere: Collection[str],
    ) -> Excerpt:
        """Return a batch of turns with some of the environment's slots."""
        return slots.excerpt(recorded, groups)

    def fields(self, recorded: Skeletons) -> list[str]:
        """Return none: which entries of a turn a replay can do without is not known."""
        return []

    def _prompts(self, call: Call) -> list[dict[str, Any]] | None:
        collector = call.args[0]
        if call.point.target == _IN_FLIGHT:
            return None
        if call.point.target == _TURNS and collector.reset_at_each_iter:
            return []  # drawn by the call itself
        if collector._shuttle is None:
            collector._shuttle = collector.env.reset()
        return prompts(collector.env, collector._shuttle)
