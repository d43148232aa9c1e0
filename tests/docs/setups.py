"""What pages take for granted: names that a `setup` note puts into a page's namespace."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.docs.blocks import ROOT
from tests.verl.overrides import VALIDATION
from tests.verl.skip_manager import kept_apart, skipping


def committed_cassettes() -> dict[str, Any]:
    """Let `cassettes/` be that of the repository."""
    Path("cassettes").symlink_to(ROOT / "cassettes")
    return {}


def verl_trainer(train: Any) -> dict[str, Any]:
    """Return a trainer of verl's: its real `fit()`, on the in-process harness.

    Args:
        train: The fixture of tests/verl/conftest.py. It makes a trainer and fits it.
    """

    def fit(agent_loop_manager: Any) -> None:
        with redirect_stdout(io.StringIO()):  # verl prints where it is; pages show what we print
            train(steps=3)

    return {"trainer": SimpleNamespace(fit=fit), "agent_loop_manager": None}


def verl_validation(train: Any) -> dict[str, Any]:
    """Return a trainer whose real `fit()` validates too; it is initialized when it is fitted.

    Args:
        train: The fixture of tests/verl/conftest.py.
    """

    def fit(agent_loop_manager: Any) -> None:
        with redirect_stdout(io.StringIO()):
            train(steps=3, overrides=VALIDATION)

    trainer = SimpleNamespace(init=lambda: None, fit=fit)
    return {"trainer": trainer, "agent_loop_manager": None}


def trl_trainer(train_trl: Any) -> dict[str, Any]:
    """Return a trainer of TRL's, to be trained for three steps and evaluated.

    Args:
        train_trl: The fixture of tests/trl/conftest.py, which makes trainers.
    """
    from tests.trl.training import one_thread

    trainer = train_trl.make(max_steps=3)
    trainer.train = one_thread()(trainer.train)
    return {"trainer": trainer}


def torchrl_collector(train_torchrl: Any) -> dict[str, Any]:
    """Return a collector of torchrl's, and a function that trains on a batch.

    Args:
        train_torchrl: The fixture of tests/torchrl/conftest.py, which makes collectors.
    """
    collector, train = train_torchrl.loop()
    return {"collector": collector, "train": train}


def verl_skip(assets: Any) -> dict[str, Any]:
    """Return verl's configuration with SkipManager on.

    Args:
        assets: The fixture of tests/verl/conftest.py.
    """
    from rollout_cassettes.demo.config import compose_config

    return {"config": compose_config(assets, 3, skipping("rollout_tq", Path("dump").absolute()))}


def verl_dumps(train: Any) -> dict[str, Any]:
    """Let verl's own SkipManager dump three steps into `dump/`.

    Args:
        train: The fixture of tests/verl/conftest.py.
    """
    with kept_apart(), redirect_stdout(io.StringIO()):
        train(steps=3, overrides=skipping("rollout_tq", Path("dump").absolute()))
    return {}
