"""verl's plugin: opens a session around `fit`, in the process in which the trainer runs.

verl loads it in every process that imports verl, through the packaging entry point of the group
``verl.plugins``. It imports nothing of verl's. It wraps five functions, each right after verl has
imported it: ``fit`` of the two trainers, overrides included; what prepares them, where the engine is
not to be started; and the function that makes the runtime environment of Ray, in the process that
starts the training.

``FullyAsyncRollouter`` and other trainers that are Ray actors travel to their process by value, with
the methods that they had when they were decorated. Their ``fit`` is wrapped before that, as soon as
the class is defined.

Source: verl 0.9.1, ``verl/__init__.py``, ``verl/trainer/main_ppo.py``,
``verl/experimental/fully_async_policy/``.
"""

from __future__ import annotations

import logging
import os
import sys
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from rollout_cassettes import patching
from rollout_cassettes.configuration import RUN_VARIABLE, Configuration
from rollout_cassettes.errors import EntryPointNotFoundError
from rollout_cassettes.patching import Answer, Call, EntryPoint
from rollout_cassettes.session import Session

logger = logging.getLogger("rollout_cassettes")

NAME = "verl_plugin"

HYDRA_KEY = "cassettes"

_CONSUMERS = "verl.experimental.fully_async_policy.fully_async_trainer"
"""Holds a trainer that gets its rollouts from another process, the one to have the session."""


class _Plugin:
    """Answers the calls of some functions of verl's, for as long as the process lives."""

    def __init__(self) -> None:
        self._answers: dict[str, Callable[[Call], Answer]] = {}

    def install(self, target: str, answer: Callable[[Call], Answer]) -> None:
        """Wrap a function, overrides included, now or when verl imports it.

        Args:
            target: The function.
            answer: What is done about a call of it.
        """
        self._answers[target] = answer
        point = EntryPoint.to(NAME, target, framework="verl", overrides=True)
        patching.once_imported(point.module, lambda _: self._wrap(point))

    def _wrap(self, point: EntryPoint) -> None:
        try:
            self.come_first([point])
        except EntryPointNotFoundError as error:
            if os.environ.get(RUN_VARIABLE):
                raise
            # This verl may be used for something else: it is to work as without us.
            logger.warning("no training of this verl can be recorded by configuration: %s", error)

    def come_first(self, points: Sequence[EntryPoint] = ()) -> None:
        """Be asked before the sessions that are open, about calls of further functions too."""
        patching.activate(self, points)  # raises before anything has changed
        patching.deactivate(self, ())
        patching.activate(self, ())

    def handle(self, call: Call) -> Answer:
        """Answer a call of one of the functions, and pass all others on."""
        answer = self._answers.get(call.point.target)
        if answer is None:
            return (yield False)
        return (yield from answer(call))

    def pass_over(self, call: Call) -> None:
        """Take no note."""


_plugin = _Plugin()

_early: WeakKeyDictionary[Any, tuple[ExitStack, Session]] = WeakKeyDictionary()
"""The sessions that were opened before their trainer's `fit`."""


def _init(call: Call) -> Answer:
    """Open the session before the engine would be started, if it is to stay out."""
    trainer = call.args[0]
    configured = _configured_for(trainer)
    if configured is None or configured.values.get("engines", "live") == "live":
        return (yield False)
    with ExitStack() as stack:
        session = stack.enter_context(configured.opened(_started_in()))
        result = yield False
        block = stack.pop_all()
    _early[trainer] = block, session
    weakref.finalize(trainer, block.close)  # it may never come to its fit
    _plugin.come_first()  # at fit: to close the session, also where it refuses that call
    return result


def _fit(call: Call) -> Answer:
    """Let the session that is configured be open for as long as the training takes."""
    trainer = call.args[0]
    if trainer in _early:
        block, session = _early.pop(trainer)
        with block:
            return _unless_refused(session, (yield False))
    configured = _configured_for(trainer)
    if configured is None:
        return (yield False)
    with configured.opened(_started_in()) as session:
        # It came too late to be asked about the call that it was opened for.
        return _unless_refused(session, (yield from session.handle(call)))


def _unless_refused(session: Session, result: Any) -> Any:
    """Return what `fit` returned, unless it swallowed an error, as verl's rollouter does."""
    if session.refusal is not None:
        raise session.refusal
    return result


def _launch(call: Call) -> Answer:
    """Check the configuration where the training is started, and send it along.

    Processes of a cluster that runs already don't inherit the environment of this one, and have
    another working directory.
    """
    config = call.arguments.get("config")
    configured = _configured(config)
    runtime_env = yield False
    if configured is None:
        return runtime_env
    located = configured.under(_started_in())
    if os.environ.get(RUN_VARIABLE):
        runtime_env.setdefault("env_vars", {})[RUN_VARIABLE] = located.to_json()
    else:
        from omegaconf import OmegaConf  # noqa: PLC0415 - this module is imported by all of verl

        OmegaConf.update(config, f"{HYDRA_KEY}.path", str(located.path), force_add=True)
    return runtime_env


def _configured_for(trainer: Any) -> Configuration | None:
    """Return what a trainer is to record or replay; None for nothing."""
    if any(cls.__module__ == _CONSUMERS for cls in type(trainer).__mro__):
        return None
    return _configured(trainer.config)


def _configured(config: Any) -> Configuration | None:
    """Return what the command line says, or else verl's configuration; None for nothing.

    Raises:
        CassetteError: If an option is unknown, or of an unknown value.
    """
    node = None if config is None else config.get(HYDRA_KEY)
    found = Configuration.from_environment()
    if found is not None:
        if node is not None:
            logger.warning("%s goes before the keys %s.*", found.origin, HYDRA_KEY)
        return found
    if node is None:
        return None
    from omegaconf import OmegaConf  # noqa: PLC0415

    given = OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
    return Configuration.parse(given, f"{HYDRA_KEY} in verl's configuration")


def _started_in() -> Path:
    """Return the directory in which the training was started; Hydra may have left it."""
    hydra = sys.modules.get("hydra.core.hydra_config")
    if hydra is not None and hydra.HydraConfig.initialized():
        return Path(hydra.HydraConfig.get().runtime.cwd)
    return Path.cwd()


for _target, _answer in {
    "verl.trainer.ppo.v1.trainer_base:PPOTrainer.init": _init,
    "verl.trainer.ppo.v1.trainer_base:PPOTrainer.fit": _fit,
    "verl.trainer.ppo.ray_trainer:RayPPOTrainer.init_workers": _init,
    "verl.trainer.ppo.ray_trainer:RayPPOTrainer.fit": _fit,
    "verl.trainer.constants_ppo:get_ppo_ray_runtime_env": _launch,
}.items():
    _plugin.install(_target, _answer)
