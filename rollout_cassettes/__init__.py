"""VCR for reinforcement-learning rollouts.

Record what the rollout engine produced at each step of a training run, and replay it without the
engine, in milliseconds, equal to the bit.

PYTEST_DONT_REWRITE: else pytest warns where someone imports the library before calling `pytest.main`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rollout_cassettes import adapters, testing, verl_config
    from rollout_cassettes.cassette import (
        Cassette,
        Interaction,
        Key,
        Manifest,
        Omitted,
        open_cassette,
        register_codec,
    )
    from rollout_cassettes.errors import (
        AdapterLoadError,
        CassetteCorruptError,
        CassetteError,
        CassetteInUseError,
        CassetteNotFoundError,
        CassetteVersionError,
        CassetteWriteError,
        EntryPointNotFoundError,
        RequestMismatchError,
        RolloutBlockedError,
        StepExistsError,
        StepNotRecordedError,
        UnplayedError,
        UnstorableValueError,
    )
    from rollout_cassettes.session import (
        Player,
        Recorder,
        Session,
        Summary,
        record,
        replay,
        use_cassette,
    )
    from rollout_cassettes.shrinking import Shrunk, shrink
    from rollout_cassettes.trajectories import Trajectory

__version__ = "0.1.0"

__all__ = [
    "AdapterLoadError",
    "Cassette",
    "CassetteCorruptError",
    "CassetteError",
    "CassetteInUseError",
    "CassetteNotFoundError",
    "CassetteVersionError",
    "CassetteWriteError",
    "EntryPointNotFoundError",
    "Interaction",
    "Key",
    "Manifest",
    "Omitted",
    "Player",
    "Recorder",
    "RequestMismatchError",
    "RolloutBlockedError",
    "Session",
    "Shrunk",
    "StepExistsError",
    "StepNotRecordedError",
    "Summary",
    "Trajectory",
    "UnplayedError",
    "UnstorableValueError",
    "adapters",
    "open_cassette",
    "record",
    "register_codec",
    "replay",
    "shrink",
    "testing",
    "use_cassette",
    "verl_config",
]

_HOMES = ("cassette", "errors", "session", "shrinking", "trajectories")
"""The packages that hold them, apart from those that are modules themselves."""


def __getattr__(name: str) -> Any:
    """Import the library with the first of its names that is asked for.

    Its plugin for pytest is imported in every test run where it is installed, and most of them use no
    cassette.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "testing":  # imported by tests alone
        return importlib.import_module(f"{__name__}.{name}")
    for home in (*_HOMES, "adapters", "verl_config"):
        module = importlib.import_module(f"{__name__}.{home}")
        if home in _HOMES:
            globals().update({n: vars(module)[n] for n in module.__all__ if n in __all__})
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
