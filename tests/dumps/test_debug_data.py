"""Debug data of slime's, as its `--save-debug-rollout-data` writes them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import rollout_cassettes as rc
from rollout_cassettes import dumps
from rollout_cassettes.adapters.slime import generate_rollout
from tests.slime import rollouts
from tests.slime.rollouts import Prompts, arguments, plain


@pytest.fixture
def slime():
    """Slime's types."""
    with rollouts.stand_ins() as types:
        yield types


@pytest.fixture
def save(slime, tmp_path):
    """Write the files of a run: `save("{rollout_id}.pt", extra=None) -> the samples of each`."""

    def write(template, extra=None):
        source, log = Prompts(), []
        for step in range(2):
            output = rollouts.generate_rollout(arguments(), step, source)
            samples = [sample for group in output.samples for sample in group]
            log.append(plain(samples))
            dicts = [
                sample.to_dict() | ({"extra": extra} if extra is not None else {})
                for sample in samples
            ]
            path = tmp_path / template.format(rollout_id=step)
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.save({"rollout_id": step, "samples": dicts}, path)
        evaluation = tmp_path / template.format(rollout_id="eval_1")
        evaluation.parent.mkdir(parents=True, exist_ok=True)
        torch.save({"rollout_id": 1, "samples": []}, evaluation)
        return log

    return write


@pytest.mark.parametrize(
    ("template", "source"),
    [
        ("{rollout_id}.pt", ""),
        ("run/{rollout_id}.pt", "run/{rollout_id}.pt"),
        ("run/rollout_{rollout_id}/data.pt", "run/rollout_{rollout_id}/data.pt"),
        ("run/lr[1e-6]_{rollout_id}.pt", "run/lr[1e-6]_{rollout_id}.pt"),
    ],
)
def test_an_import_is_replayed(save, tmp_path, template, source, caplog):
    """With the class of the running framework; the source of prompts goes on by a batch."""
    live = save(template)
    made = dumps.import_dumps(tmp_path / source, tmp_path / "cassette")
    assert (made.adapter, made.steps, made.interactions) == ("slime", [0, 1], 2)
    assert "evaluations" in caplog.text
    rollouts.calls.clear()
    prompts = Prompts()
    with rc.replay(path=tmp_path / "cassette"):
        again = [generate_rollout(arguments(), step, prompts) for step in range(2)]
    assert [plain([s for group in each for s in group]) for each in again] == live
    assert all(len({s.group_index for s in group}) == 1 for each in again for group in each)
    assert rollouts.calls == []
    assert prompts.offset == sum(map(len, again))
    rows = rc.open_cassette(tmp_path / "cassette")[0].trajectories
    assert [row.response for row in rows] == [sample["response"] for sample in live[0]]


def test_repeat_mode_fits_an_import(save, tmp_path):
    save("{rollout_id}.pt")
    dumps.import_dumps(tmp_path, tmp_path / "cassette")
    groups = len(rc.open_cassette(tmp_path / "cassette")[0].response["dumped"]) // 2
    args = arguments()
    args.rollout_batch_size = 2 * groups
    with rc.replay(path=tmp_path / "cassette", mode="repeat"):
        assert len(generate_rollout(args, 9, Prompts())) == 2 * groups


def test_an_import_is_shrunk(save, tmp_path):
    """To its first groups, for each of which one prompt is drawn."""
    live = save("{rollout_id}.pt")
    dumps.import_dumps(tmp_path, tmp_path / "cassette")
    rc.shrink(tmp_path / "cassette", tmp_path / "small", rows=3)
    prompts = Prompts()
    with rc.replay(path=tmp_path / "small", on_unplayed="error"):
        again = [generate_rollout(arguments(), step, prompts) for step in range(2)]
    assert [plain(group) for (group,) in again] == [samples[:2] for samples in live]
    assert prompts.offset == 2


def test_nothing_in_a_file_is_run_unless_it_is_trusted(save, tmp_path):
    """Arrays of numpy's are more than torch reads without running anything."""
    save("{rollout_id}.pt", extra=np.array([{"a": 1}], dtype=object))
    with pytest.raises(rc.CassetteError, match="runs whatever code") as caught:
        dumps.import_dumps(tmp_path, tmp_path / "cassette")
    assert "--trust-pickle" in str(caught.value)
    assert not (tmp_path / "cassette").exists()
    made = dumps.import_dumps(tmp_path, tmp_path / "cassette", trust_pickle=True)
    assert made.steps == [0, 1]


@pytest.mark.parametrize("content", [b"", b"no pickle", None])
def test_a_damaged_file_is_an_error(save, tmp_path, content):
    """Or one of another rollout; nothing is left at the destination."""
    save("{rollout_id}.pt")
    if content is None:
        torch.save({"rollout_id": 7, "samples": []}, tmp_path / "1.pt")
    else:
        (tmp_path / "1.pt").write_bytes(content)
    with pytest.raises(rc.CassetteError, match=r"1\.pt"):
        dumps.import_dumps(tmp_path, tmp_path / "cassette", trust_pickle=True)
    assert not (tmp_path / "cassette").exists()


@pytest.mark.parametrize("source", ["{rollout_id}.pt", "absent"])
def test_no_debug_data_is_an_error(tmp_path, source):
    with pytest.raises(rc.CassetteError, match="no debug data"):
        dumps.import_dumps(tmp_path / source, tmp_path / "cassette", adapter="slime")
