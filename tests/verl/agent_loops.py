"""Agent loops beside verl's own, registered in its registry by name."""

from __future__ import annotations

from verl.experimental.agent_loop.agent_loop import register
from verl.experimental.agent_loop.single_turn_agent_loop import SingleTurnAgentLoop


@register("two_outputs_agent")
class TwoOutputsAgentLoop(SingleTurnAgentLoop):
    """Asks twice and hands back both answers: two trajectories of one session."""

    async def run(self, sampling_params, **kwargs):
        """Run two turns on the same prompt."""
        first = await super().run(sampling_params, **kwargs)
        second = await super().run(sampling_params, **kwargs)
        return [first, second]
