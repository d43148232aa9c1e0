"""Cassettes of TRL's trainers, shrunk: they replay in the real trainers."""

from __future__ import annotations

import pytest

import rollout_cassettes as rc

LARGE = {"shuffle_dataset": False, "eval_strategy": "no", "max_steps": 2}
SMALL = {**LARGE, "per_device_train_batch_size": 4, "gradient_accumulation_steps": 1}


def scoped(scope, path, **options):
    """Return what the sessions of a recording and its replay are given."""
    return {"path": path, "adapters": rc.adapters.TrlTrainer(scope=scope), **options}


@pytest.fixture(params=["generated", "scored"])
def large(request, train_trl, tmp_path):
    """Two steps of two prompts with four completions each."""
    path = tmp_path / "large"
    train_trl(rc.record(**scoped(request.param, path)), **LARGE, log_completions=True)
    return request.param, path


def columns(response):
    """Give the columns that are lists or tensors of rows."""
    output = response["output"]
    named = output.items() if isinstance(output, dict) else enumerate(output)
    return {n: c for n, c in named if c is not None and getattr(c, "ndim", 1) and len(c)}


def test_it_replays_what_is_asked_for_again(train_trl, large, tmp_path):
    """Cache mode: the first prompt of each step, with its four completions."""
    scope, path = large
    shrunk = rc.shrink(path, tmp_path / "small", rows=4)
    assert (shrunk.steps, shrunk.rows, shrunk.rows_before) == ([0, 1], 8, 16)
    old, new = rc.open_cassette(path), rc.open_cassette(tmp_path / "small")
    for step in (0, 1):
        whole, part = columns(old[step].response), columns(new[step].response)
        assert part.keys() == whole.keys()
        for name, column in part.items():
            assert len(column) == 4
            assert str(column) == str(whole[name][:4])
    asked = [new[step].request["rows"][0]["prompt"] for step in (0, 1)]
    trainer = train_trl.make(**SMALL)
    rows = [row for row in trainer.train_dataset if row["prompt"] in asked]
    trainer.train_dataset = trainer.train_dataset.select(
        [n for n, row in enumerate(trainer.train_dataset) if row in rows]
    )
    with rc.replay(**scoped(scope, tmp_path / "small", on_unplayed="error")) as session:
        trainer.train()
    assert session.played == [0, 1]


def test_its_completions_are_those_of_the_kept_rows(large, tmp_path):
    """For people who look at it, with their rewards."""
    _, path = large
    rc.shrink(path, tmp_path / "small", rows=4)
    for old, new in zip(rc.open_cassette(path), rc.open_cassette(tmp_path / "small"), strict=True):
        assert len(new.trajectories) == 4
        for row, was in zip(new.trajectories, old.trajectories[:4], strict=True):
            assert (row.response, row.score) == (was.response, was.score)
            assert row.response_ids.tolist() == was.response_ids.tolist()


def test_the_number_of_tokens_is_that_of_the_kept_rows(train_trl, large, tmp_path):
    """TRL divides the loss by it."""
    scope, path = large
    if scope == "generated":
        pytest.skip("tokens are counted when completions are scored")
    rc.shrink(path, tmp_path / "small", rows=4, steps=0)
    seen = []
    trainer = train_trl.make(**{**SMALL, "max_steps": 1})
    trainer.train_dataset = trainer.train_dataset.select([0])
    original = trainer._generate_and_score_completions

    def noted(inputs):
        seen.append(original(inputs))
        return seen[-1]

    trainer._generate_and_score_completions = noted
    with rc.replay(**scoped(scope, tmp_path / "small")):
        trainer.train()
    (output,) = seen
    assert output["num_items_in_batch"] == output["completion_mask"].sum()


def test_it_is_repeated_for_any_number_of_prompts(train_trl, large, tmp_path):
    """Repeat mode, for the batches of the recorded run."""
    scope, path = large
    rc.shrink(path, tmp_path / "small", rows=4, steps=[1])
    again = train_trl(
        rc.replay(mode="repeat", **scoped(scope, tmp_path / "small")), **LARGE, num_generations=4
    )
    assert again.session.played == [0, 1]
    assert again.generations == 0


def test_fields_of_scored_completions_can_be_left_out(large, tmp_path):
    scope, path = large
    if scope == "generated":
        with pytest.raises(rc.CassetteError, match="no named fields"):
            rc.shrink(path, tmp_path / "small", fields=["completion_ids"])
        return
    shrunk = rc.shrink(path, tmp_path / "small", fields=["completion_ids", "advantages"])
    assert "prompt_ids" in shrunk.dropped
    kept = rc.open_cassette(tmp_path / "small")[0].response["output"]
    assert sorted(kept) == ["advantages", "completion_ids"]
