"""VCR for reinforcement-learning rollouts.

Record what the rollout engine produced at each step of a training run, and replay it without the
engine, in milliseconds, equal to the bit.
"""

from rollout_cassettes import adapters, verl_config
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
    CassetteCorruptError,
    CassetteError,
    CassetteInUseError,
    CassetteNotFoundError,
    CassetteVersionError,
    CassetteWriteError,
    EntryPointNotFoundError,
    RequestMismatchError,
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
from rollout_cassettes.trajectories import Trajectory

__version__ = "0.1.0"

__all__ = [
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
    "Session",
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
    "use_cassette",
    "verl_config",
]
