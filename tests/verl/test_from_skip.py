"""verl's own configuration, turned into sessions of this library."""

from __future__ import annotations

import pytest

import rollout_cassettes as rc
from rollout_cassettes.dumps.directory import DumpDirectory
from tests.verl.comparison import assert_equal_trainings
from tests.verl.skip_manager import skipping

pytestmark = pytest.mark.verl


@pytest.fixture
def skip(assets, tmp_path):
    """verl's composed `config.skip`, by the action."""
    from rollout_cassettes.demo.config import compose_config

    def compose(action="cache", steps=(1, 2, 3)):
        overrides = skipping("rollout_tq", tmp_path / "dump", steps, action)
        return compose_config(assets, 3, overrides).skip

    return compose


def test_it_reads_what_hydra_composes_and_what_verl_makes_of_it(skip):
    """A DictConfig, and a SkipManagerConfig."""
    from verl.utils.config import omega_conf_to_dataclass
    from verl.utils.skip import SkipManagerConfig

    made = omega_conf_to_dataclass(skip(), dataclass_type=SkipManagerConfig)
    assert isinstance(made, SkipManagerConfig)
    first, second = (rc.verl_config.from_skip(each) for each in (skip(), made))
    assert first.pop("adapters").name == second.pop("adapters").name == "verl_v1"
    assert first == second
    assert first["steps"] == [1, 2, 3]


def test_cache_generates_what_is_missing_and_keeps_it(train, skip):
    """The first run records, a second one replays; step 3 is not listed, and always live."""
    options = rc.verl_config.from_skip(skip(steps=(1, 2)))
    with rc.replay(**options) as first:
        live = train(steps=2)
    with rc.replay(**options) as second:
        again = train(steps=2)
    assert (first.recorded, second.played, second.recorded) == ([1, 2], [1, 2], [])
    assert_equal_trainings(live, again)
    with rc.replay(**options) as third:
        assert train(steps=3).requests.training == 8
    assert (third.played, third.recorded) == ([1, 2], [])


def test_repeat_gives_the_nearest_step(train, skip):
    """Where nothing is recorded yet, it is."""
    with rc.replay(**rc.verl_config.from_skip(skip("repeat", steps=[1]))) as first:
        train(steps=1)
    assert first.recorded == [1]
    with rc.replay(**rc.verl_config.from_skip(skip("repeat"))) as second:
        assert train(steps=3).requests.training == 0
    assert second.played == [1, 2, 3]


def test_the_cassette_is_none_of_verls_dumps(train, skip, tmp_path):
    """Neither verl nor an import takes it for one."""
    options = rc.verl_config.from_skip(skip(steps=[1]))
    with rc.replay(**options):
        train(steps=1)
    assert options["path"] == tmp_path / "dump" / "rollout-cassettes" / "verl_v1"
    with pytest.raises(rc.CassetteError, match="no whole dump"):
        DumpDirectory.find(tmp_path / "dump")
