"""What is intercepted: entry points, and the calls of them."""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any


class Role(enum.Enum):
    """What an entry point is for.

    Attributes:
        WHOLE: A request goes in, and its response comes out.
        SUBMIT: A request is handed out; its response is sampled later.
        RESUBMIT: What an earlier run had submitted is handed out again, as after a checkpoint.
        SAMPLE: The responses to what was submitted are handed over.
        POLL: Tells how far the rollouts are that are under way.
        START: A run starts: an adapter may refuse it, or tell what it is going to ask for.
        ENGINE: The rollout engine is started, or given new weights.
    """

    WHOLE = "whole"
    SUBMIT = "submit"
    RESUBMIT = "resubmit"
    SAMPLE = "sample"
    POLL = "poll"
    START = "start"
    ENGINE = "engine"


@dataclass(frozen=True)
class EntryPoint:
    """A framework's function through which rollouts are asked for or handed over.

    Attributes:
        adapter: The name of the adapter that knows it.
        module: The module that holds it.
        qualname: Its qualified name in the module, such as ``"ReplayBuffer.sample"``.
        framework: The distribution it belongs to, for messages; empty where it is the user's own.
        role: What it is for.
        since: The first release of the framework that has it; an older one may lack it.
        overrides: Whether methods of subclasses that override it are entry points too.
    """

    adapter: str
    module: str
    qualname: str
    framework: str = ""
    role: Role = Role.WHOLE
    since: str = ""
    overrides: bool = False

    @classmethod
    def to(cls, adapter: str, target: str, **options: Any) -> EntryPoint:
        """Return the entry point of an adapter to ``"module:Qualified.name"``."""
        module, _, qualname = target.partition(":")
        return cls(adapter, module, qualname, **options)

    @property
    def target(self) -> str:
        """The intercepted function, as ``module:Qualified.name``: several adapters may share it."""
        return f"{self.module}:{self.qualname}"

    @property
    def claim(self) -> tuple[str, Role] | None:
        """What only one adapter may have; None where no rollouts pass.

        Adapters may share a function as long as it is something else to each: they tell by the
        call whose it is.
        """
        return None if self.role in (Role.START, Role.ENGINE) else (self.target, self.role)

    def __str__(self) -> str:
        return self.target


@dataclass(frozen=True)
class Call:
    """One call of an entry point, before it is made.

    Attributes:
        point: The entry point, as the adapter that looks at the call declares it.
        original: The function without its wrapper.
        args: The positional arguments; of a method, the first is the object.
        kwargs: The arguments given by name.
        marked_by: The adapter that wrapped the function for good, as a decorator; None where a
            session did, for as long as it is open.
    """

    point: EntryPoint
    original: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    marked_by: Any = None

    @functools.cached_property
    def bound(self) -> inspect.BoundArguments:
        """The call's arguments as the original takes them, defaults filled in."""
        bound = inspect.signature(self.original).bind(*self.args, **self.kwargs)
        bound.apply_defaults()
        return bound

    @property
    def arguments(self) -> dict[str, Any]:
        """The call's arguments by the names of the parameters, defaults included."""
        return dict(self.bound.arguments)

    def at(self, point: EntryPoint) -> Call:
        """Return the call as one of an adapter's own entry point, of the same target."""
        return self if point == self.point else replace(self, point=point)
