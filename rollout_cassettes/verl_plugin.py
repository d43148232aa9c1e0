"""verl's plugin: opens a session around `fit`, in the process in which the trainer runs.

verl loads it in every process that imports verl, through the packaging entry point of the group
``verl.plugins``. It imports nothing of verl's. It wraps three functions, each right after verl has
imported it: the two trainers' ``fit``, overrides included, and the function that makes the runtime
environment of Ray, in the process that starts the training.

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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from rollout_cassettes import patching
from rollout_cassettes.configuration import RUN_VARIABLE, Configuration
from rollout_cassettes.errors import CassetteError, EntryPointNotFoundError
from rollout_cassettes.patching import Answer, Call, EntryPoint
from rollout_cassettes.session import Player, Session

logger = logging.getLogger("rollout_cassettes")

NAME = "verl_plugin"

HYDRA_KEY = "cassettes"

_FIT_V1 = EntryPoint(
    adapter=NAME,
    module="verl.trainer.ppo.v1.trainer_base",
    qualname="PPOTrainer.fit",
    framework="verl",
    overrides=True,
)
_FIT_V0 = EntryPoint(
    adapter=NAME,
    module="verl.trainer.ppo.ray_trainer",
    qualname="RayPPOTrainer.fit",
    framework="verl",
    overrides=True,
)
_LAUNCH = EntryPoint(
    adapter=NAME,
    module="verl.trainer.constants_ppo",
    qualname="get_ppo_ray_runtime_env",
    framework="verl",
)

_CONSUMERS = "verl.experimental.fully_async_policy.fully_async_trainer"
"""Holds a trainer that gets its rollouts from another process, the one to have the session."""


class _Plugin:
    """Answers the calls of one entry point, for as long as the process lives.

    Args:
        point: The entry point.
        answer: What it does about a call.
    """

    def __init__(self, point: EntryPoint, answer: Callable[[Call], Answer]) -> None:
        self._point = point
        self._answer = answer

    def install(self) -> None:
        """Wrap the function, now or when verl imports it."""
        patching.once_imported(self._point.module, self._wrap)

    def _wrap(self, _: ModuleType) -> None:
        try:
            patching.activate(self, [self._point])
        except EntryPointNotFoundError as error:
            if os.environ.get(RUN_VARIABLE):
                raise
            # This verl may be used for something else: it is to work as without us.
            logger.warning("no training of this verl can be recorded by configuration: %s", error)

    def handle(self, call: Call) -> Answer:
        """Answer a call of the entry point, and pass all others on."""
        if call.point.target != self._point.target:
            return (yield False)
        return (yield from self._answer(call))

    def pass_over(self, call: Call) -> None:
        """Take no note."""


def _fit(call: Call) -> Answer:
    """Open the session that is configured, for as long as the training takes."""
    trainer = call.args[0]
    consumes = any(cls.__module__ == _CONSUMERS for cls in type(trainer).__mro__)
    configured = None if consumes else _configured(trainer.config)
    if configured is None:
        return (yield False)
    with _heard(), _located(configured).session() as session:
        logger.info("%s, as %s says", _plan(session), configured.origin)
        result = yield False
        if session.refusal is not None:  # verl's asynchronous rollouter ends quietly on errors
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


def _located(configured: Configuration) -> Configuration:
    """Return a configuration with an absolute path.

    Raises:
        CassetteError: If the path is relative and nobody knows to what.
    """
    if not configured.path.is_absolute() and _is_actor():
        raise CassetteError(
            f"{configured.origin}: the path {configured.path} is relative, and the working "
            "directory of this Ray actor is not that in which the training was started.",
            fixes=["Give an absolute path, on a disk that the actor's node has."],
        )
    return configured.under(_started_in())


def _is_actor() -> bool:
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return False
    return ray.get_runtime_context().get_actor_id() is not None


def _started_in() -> Path:
    """Return the directory in which the training was started; Hydra may have left it."""
    hydra = sys.modules.get("hydra.core.hydra_config")
    if hydra is not None and hydra.HydraConfig.initialized():
        return Path(hydra.HydraConfig.get().runtime.cwd)
    return Path.cwd()


def _plan(session: Session) -> str:
    what, way = ("replaying", "from") if isinstance(session, Player) else ("recording", "to")
    selected = session.selection.text
    steps = "all steps" if selected == "all" else f"steps {selected}"
    return f"{what} {steps} {way} {session.path}"


@contextmanager
def _heard() -> Iterator[None]:
    """Let the session's messages through: verl 0.9.1 sets the root logger to WARNING.

    A level that someone has chosen for this library stays as it is.
    """
    chosen = logger.level
    if chosen == logging.NOTSET:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(chosen)


for _point, _answer in ((_FIT_V1, _fit), (_FIT_V0, _fit), (_LAUNCH, _launch)):
    _Plugin(_point, _answer).install()
