"""A trajectory: a prompt, what the model made of it, and what that was worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One row of a recorded batch. What a recording does not hold is None.

    Attributes:
        step: The step that it is filed under.
        phase: ``"train"``, ``"val"``, ….
        row: Its place in the batch, counted from 0.
        uid: What its prompt is called in the run that was recorded.
        group: The number of its prompt, counted from 0 in the order of the request.
        session: Which of its prompt's responses it is, counted from 0.
        output_index: Which of its session's outputs it is, where an agent gives several.
        prompt: The prompt as text, or as chat messages.
        response: The response as text.
        tokens: The text of each token of the response, once it is :meth:`decoded`.
        prompt_ids: Token ids, without padding. Shape ``[prompt_length]``.
        response_ids: Token ids, without padding. Shape ``[response_length]``.
        mask: 1 where the model wrote the token, 0 where a tool or the user did. Shape
            ``[response_length]``.
        log_probs: The log-probability with which each token was sampled, in nats. Shape
            ``[response_length]``.
        rewards: The reward of each token. Shape ``[response_length]``.
        score: The reward of the whole; where rewards are given by token, their sum.
        metadata: The other fields of the row, by name.
    """

    step: int = 0
    phase: str = "train"
    row: int = 0
    uid: str | None = None
    group: int | None = None
    session: int | None = None
    output_index: int = 0
    prompt: str | list[Any] | None = None
    response: str | None = None
    tokens: list[str] | None = None
    prompt_ids: Array | None = None
    response_ids: Array | None = None
    mask: Array | None = None
    log_probs: Array | None = None
    rewards: Array | None = None
    score: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def decoded(self, decode: Callable[[list[int]], str]) -> Trajectory:
        """Return the trajectory with its prompt and its response as text, made from their tokens.

        Args:
            decode: A tokenizer's: takes token ids, gives their text.
        """
        parts: dict[str, Any] = {}
        if self.prompt_ids is not None:
            parts["prompt"] = decode(self.prompt_ids.tolist())
        if self.response_ids is not None:
            ids = self.response_ids.tolist()
            texts = {token: decode([token]) for token in dict.fromkeys(ids)}
            parts |= {"response": decode(ids), "tokens": [texts[token] for token in ids]}
        return replace(self, **parts)

    @property
    def prompt_length(self) -> int | None:
        """How many tokens the prompt has."""
        return None if self.prompt_ids is None else len(self.prompt_ids)

    @property
    def response_length(self) -> int | None:
        """How many tokens the response has."""
        return None if self.response_ids is None else len(self.response_ids)

    @property
    def prompt_text(self) -> str | None:
        """The prompt as text; of chat messages, a paragraph each, after its role."""
        if self.prompt is None or isinstance(self.prompt, str):
            return self.prompt
        return "\n\n".join(f"{role}: {text}" for role, text in self.messages or ())

    @property
    def messages(self) -> list[tuple[str, str]] | None:
        """The chat messages of the prompt: who says what; None where it is no chat."""
        if self.prompt is None or isinstance(self.prompt, str):
            return None
        return [(str(each.get("role", "?")), _content_text(each)) for each in self.prompt]

    @property
    def question(self) -> str | None:
        """The last message of the prompt, or the prompt itself, as text."""
        if isinstance(self.prompt, str):
            return self.prompt
        return _content_text(self.prompt[-1]) if self.prompt else None

    @property
    def key(self) -> str | None:
        """Its name in the run that was recorded: ``{uid}_{session}_{output}``, as verl has it."""
        if self.uid is None or self.session is None:
            return self.uid
        return f"{self.uid}_{self.session}_{self.output_index}"

    @property
    def place(self) -> tuple[int, int, int]:
        """Where it belongs, in whatever order trajectories are: prompt, session, output."""
        group = self.row if self.group is None else self.group
        return group, self.session or 0, self.output_index

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, str]:
        from rollout_cassettes.display.html import whole  # noqa: PLC0415 - rich
        from rollout_cassettes.display.plain import as_text  # noqa: PLC0415
        from rollout_cassettes.trajectories.html import trajectory_html  # noqa: PLC0415
        from rollout_cassettes.trajectories.view import trajectory_view  # noqa: PLC0415

        return {
            "text/plain": as_text(trajectory_view(self)),
            "text/html": whole(trajectory_html(self)),
        }


def _content_text(message: Mapping[str, Any]) -> str:
    """Write what a chat message says; parts that are no text, such as images, by their type."""
    content = message.get("content")
    if isinstance(content, Sequence) and not isinstance(content, str):
        parts = [part if isinstance(part, Mapping) else {"text": part} for part in content]
        content = "".join(str(part.get("text", f"<{part.get('type')}>")) for part in parts)
    return "" if content is None else str(content)
