"""verl's `skip` section in this library's terms."""

from __future__ import annotations

from pathlib import Path

import pytest

import rollout_cassettes as rc
from rollout_cassettes.verl_config import from_skip


def section(**options):
    return {"enable": True, "dump_dir": "/dump", "steps": [1, 3], "action": "cache", **options}


@pytest.mark.parametrize(
    ("role", "adapter"),
    [("rollout", "verl_v0"), ("rollout_tq", "verl_v1"), ("async_rollout", "verl_fully_async")],
)
def test_each_section_has_its_adapter(role, adapter):
    """Everything but it is the same for all of them."""
    options = from_skip({role: section()})
    assert options.pop("adapters").name == adapter
    assert options == {
        "steps": [1, 3],
        "mode": "cache",
        "path": Path("/dump/rollout-cassettes") / adapter,
        "on_miss": "record",
    }


def test_the_result_is_what_replay_takes(tmp_path):
    """Option by option: nothing is to be translated."""
    skip = {"rollout": section(action="repeat", dump_dir=str(tmp_path))}
    with rc.replay(**from_skip(skip)) as session:
        pass
    assert isinstance(session, rc.Player)
    assert session.path == tmp_path / "rollout-cassettes" / "verl_v0"


def test_repeat_is_a_mode():
    assert from_skip({"rollout": section(action="repeat")})["mode"] == "repeat"


def test_what_is_left_out_is_as_verl_has_it():
    """verl's own defaults; and sections that are not enabled don't matter."""
    options = from_skip({"rollout_tq": {"enable": True}, "rollout": section(enable=False)})
    home = Path("~/.verl/rollout_dump").expanduser()
    assert options["path"] == home / "rollout-cassettes" / "verl_v1"
    assert (options["steps"], options["mode"]) == ([], "cache")


def test_runs_that_share_a_directory_have_names():
    """verl has the experiment's name in the path of its dumps, which is not in this section."""
    options = from_skip({"rollout": section()}, name="exp")
    assert options["path"] == Path("/dump/rollout-cassettes/exp/verl_v0")


@pytest.mark.parametrize(
    ("skip", "error", "said"),
    [
        ({"rollout": section(enable=False)}, ValueError, "none is"),
        ({"rollout": section(), "rollout_tq": section()}, ValueError, "rollout, rollout_tq are"),
        ({"rollout": {}, "reward": section()}, ValueError, "skip.reward is, which is unknown"),
        ({"rollout": section(action="random")}, ValueError, "skip.rollout.action is one of"),
        ({"rollout": section(enable="no")}, TypeError, "skip.rollout.enable is True or False"),
        ({"rollout": section(dump_dir=None)}, TypeError, "skip.rollout.dump_dir"),
        ({"rollout": section(steps="1-3")}, TypeError, "skip.rollout.steps"),
        ({"rollout": section(steps=[1.0])}, TypeError, "skip.rollout.steps"),
        ({"rollout": section(steps=3)}, TypeError, "skip.rollout.steps"),
        ({"trainer": {}, "data": {}}, TypeError, "config.skip"),
        (None, TypeError, "config.skip"),
    ],
)
def test_what_makes_no_sense_is_refused(skip, error, said):
    """With the option's name as verl has it."""
    with pytest.raises(error, match=said):
        from_skip(skip)
