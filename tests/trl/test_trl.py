"""TRL's own trainers, recorded and replayed."""

from __future__ import annotations

import pytest

import rollout_cassettes as rc

BOTH = ("train", "val")


@pytest.fixture
def cassette(tmp_path):
    return tmp_path / "cassette"


def scoped(scope, path, **options):
    """Return what both sessions of a recording and its replay are given."""
    return {"path": path, "adapters": rc.adapters.TrlTrainer(scope=scope), **options}


@pytest.mark.parametrize("scope", ["generated", "scored"])
@pytest.mark.parametrize("trainer", ["GRPO", "RLOO"])
def test_a_replay_is_equal_to_the_bit(train_trl, cassette, trainer, scope):
    """Parameters and every metric, with evaluation, accumulation, dropout and a reference model."""
    options = scoped(scope, cassette, phases=BOTH)
    live = train_trl(rc.record(**options), trainer)
    again = train_trl(rc.replay(**options, on_unplayed="error"), trainer)
    assert again.is_equal(live)
    assert live.generations == 6 + 2 * 2
    assert again.generations == 0
    assert again.rewards == (live.rewards if scope == "generated" else 0)
    assert again.session.played == [0, 1, 2, 3, 4, 5, 6]


def test_a_session_by_itself_records_training(train_trl, cassette):
    """Evaluation stays live unless it is asked for; steps are counted from 0."""
    live = train_trl(rc.record(path=cassette))
    keys = rc.open_cassette(cassette).keys
    assert keys == [rc.Key(step) for step in range(6)]
    again = train_trl(rc.replay(path=cassette))
    assert again.is_equal(live)
    assert again.generations == 4


def test_a_run_without_a_session_is_the_recorded_one(train_trl, cassette):
    """Recording changes nothing."""
    assert train_trl().is_equal(train_trl(rc.record(path=cassette, phases=BOTH)))


def test_the_recording_is_what_the_method_returned(train_trl, cassette):
    """The tuple of `_generate`, and the rows that it was asked for."""
    train_trl(rc.record(0, path=cassette))
    interaction = rc.open_cassette(cassette)[0]
    output = interaction.response["output"]
    assert type(output) is tuple
    prompt_ids, completion_ids, tool_mask, completions, logprobs, extra, images, tool_images = (
        output
    )
    assert len(prompt_ids) == len(completion_ids) == len(completions) == 8
    assert len({len(ids) for ids in completion_ids}) > 1
    assert completions[0][0]["role"] == "assistant"
    assert (tool_mask, logprobs, extra, images, tool_images) == (None, None, {}, None, [])
    assert interaction.request["rows"][0] == interaction.request["rows"][3]
    assert interaction.request["rows"][0].keys() == {"prompt"}
    assert interaction.manifest.step_kind == "global step"
    assert interaction.manifest.versions.keys() >= {"trl", "transformers", "accelerate", "torch"}


def test_every_evaluation_batch_is_an_interaction(train_trl, cassette):
    """Told apart by its index, at the step after which it is made."""
    train_trl(rc.record(path=cassette, phases="val"))
    assert rc.open_cassette(cassette).keys == [
        rc.Key(step, "val", index) for step in (3, 6) for index in (0, 1)
    ]


@pytest.mark.parametrize("scope", ["generated", "scored"])
def test_several_generations_in_a_step_and_steps_without_any(train_trl, cassette, scope):
    """`steps_per_generation` and `num_iterations` decide when TRL generates."""
    options = scoped(scope, cassette)
    for config, keys in (
        ({"steps_per_generation": 1}, [rc.Key(s, index=i) for s in range(4) for i in range(2)]),
        ({"num_iterations": 2}, [rc.Key(0), rc.Key(2)]),
        ({"steps_per_generation": 4, "num_iterations": 2}, [rc.Key(0)]),
    ):
        path = cassette / "-".join(config)
        options["path"] = path
        live = train_trl(rc.record(**options), max_steps=4, eval_strategy="no", **config)
        assert rc.open_cassette(path).keys == keys
        again = train_trl(rc.replay(**options), max_steps=4, eval_strategy="no", **config)
        assert again.is_equal(live)
        assert again.generations == 0


@pytest.mark.parametrize("scope", ["generated", "scored"])
def test_what_the_trainer_notes_is_put_back(train_trl, cassette, scope):
    """Token counts, and the log of completions that TRL writes where it is asked to."""
    options = scoped(scope, cassette)
    config = {"logging_steps": 2, "eval_strategy": "no", "max_steps": 5}
    live = train_trl(rc.record(**options), **config)
    again = train_trl(rc.replay(**options), **config)
    assert again.is_equal(live)
    assert again.trainer.state.num_input_tokens_seen == live.trainer.state.num_input_tokens_seen > 0
    assert again.trainer._metrics == live.trainer._metrics
    assert again.trainer._logs == live.trainer._logs
    assert len(again.trainer._logs["prompt"]) == 8
    assert list(again.trainer._logs["rewards"]) == ["digits"]


@pytest.mark.parametrize("scope", ["generated", "scored"])
@pytest.mark.parametrize("steps", ["1-2", [0, 5]])
def test_steps_that_are_not_selected_go_live(train_trl, cassette, scope, steps):
    """Live and replayed steps follow each other, and the run is the same."""
    options = scoped(scope, cassette)
    live = train_trl(rc.record(**options))
    again = train_trl(rc.replay(steps, **options))
    assert again.is_equal(live)
    assert again.session.played == ([1, 2] if steps == "1-2" else steps)
    assert again.generations == live.generations - 2


def test_what_is_missing_is_generated_and_kept_if_asked_for(train_trl, cassette):
    """The run is the same; the next one has it all."""
    live = train_trl(rc.record("0-2", path=cassette))
    filled = train_trl(rc.replay(path=cassette, on_miss="record"))
    assert filled.is_equal(live)
    assert filled.session.recorded == [3, 4, 5]
    assert train_trl(rc.replay(path=cassette)).session.played == [0, 1, 2, 3, 4, 5]
    with pytest.raises(rc.StepNotRecordedError, match="Step 6"):
        train_trl(rc.replay(path=cassette), max_steps=7, eval_strategy="no")


def test_without_the_generators_the_run_is_another(train_trl, cassette):
    """What the trainer draws after generating depends on what generating drew."""
    live = train_trl(rc.record(path=cassette))
    assert not train_trl(rc.replay(path=cassette, restore_rng=False)).is_equal(live)


def test_a_run_that_is_resumed_goes_on_in_the_cassette(train_trl, cassette, tmp_path):
    """At the step of the checkpoint."""
    config = {"save_strategy": "steps", "save_steps": 2, "output_dir": str(tmp_path / "out")}
    live = train_trl(rc.record(path=cassette, phases=BOTH), **config)
    again = train_trl(
        rc.replay(path=cassette, phases=BOTH), resume=tmp_path / "out" / "checkpoint-2", **config
    )
    for run in (live, again):
        run.metrics.pop()  # the mean of the loss since the run was started
    assert again.is_equal(live)
    assert again.session.played == [2, 3, 4, 5, 6]
    assert again.generations == 0


@pytest.mark.parametrize(("scope", "field"), [("generated", "prompt"), ("scored", "ground_truth")])
def test_other_data_is_a_mismatch_with_row_and_field(train_trl, cassette, scope, field):
    """Where rewards are replayed, all columns count."""
    options = scoped(scope, cassette)
    train_trl(rc.record(**options))
    made = train_trl.make()
    if scope == "scored":
        made.train_dataset = made.train_dataset.map(lambda row: row | {"ground_truth": "0"})
    else:
        turn = [{"role": "user", "content": "Why?"}]
        made.train_dataset = made.train_dataset.map(lambda row: row | {"prompt": turn})
    with pytest.raises(rc.RequestMismatchError) as caught, rc.replay(**options):
        made.train()
    assert (caught.value.step, caught.value.row, caught.value.field) == (0, 0, field)


def test_a_cassette_is_of_one_scope(train_trl, cassette):
    """What each of them recorded is something else."""
    train_trl(rc.record(path=cassette))
    with pytest.raises(rc.StepNotRecordedError, match=r"'trl', and is asked for.*'trl_scored'"):
        train_trl(rc.replay(**scoped("scored", cassette)))


def test_an_unknown_scope_is_refused():
    """When the adapter is made."""
    with pytest.raises(ValueError, match="'generated' or 'scored'; got 'rewarded'"):
        rc.adapters.TrlTrainer(scope="rewarded")


# ---- people who look at it


@pytest.mark.parametrize("scope", ["generated", "scored"])
@pytest.mark.parametrize("trainer", ["GRPO", "RLOO"])
def test_people_see_the_completions(train_trl, cassette, trainer, scope):
    """Grouped by prompt, without padding; with rewards where these are recorded."""
    import trl

    kept = []

    class Watching(getattr(trl, f"{trainer}Trainer")):
        def _generate(self, *args, **kwargs):
            kept.append(super()._generate(*args, **kwargs))
            return kept[-1]

    Watching.__name__ = f"{trainer}Trainer"  # it tells which options it takes
    options = scoped(scope, cassette, phases=BOTH)
    live = train_trl(rc.record(**options), Watching, max_steps=2, eval_steps=2)
    interactions = rc.open_cassette(cassette).interactions()
    assert len(interactions) == len(kept) == 4
    for interaction, output in zip(interactions, kept, strict=True):
        rows = interaction.trajectories
        texts = next(each for each in output[2:] if each is not None)
        assert [row.prompt_ids.tolist() for row in rows] == output[0]
        assert [row.response_ids.tolist() for row in rows] == output[1]
        assert [row.response for row in rows] == [turns[0]["content"] for turns in texts]
        assert [row.prompt for row in rows] == [
            row["prompt"] for row in interaction.request["rows"]
        ]
        places = [divmod(number, 4) for number in range(len(rows))]
        assert [(row.group, row.session) for row in rows] == places
        assert interaction.figures.statistics.groups == len(rows) // 4
        if scope == "scored":
            assert all(row.mask.all() for row in rows)
            assert [row.score for row in rows] == [row.metadata["rewards/digits"] for row in rows]
    if scope == "scored":
        logs = live.trainer._logs
        rows = [row for each in interactions[-2:] for row in each.trajectories]
        assert [row.score for row in rows] == list(logs["rewards"]["digits"])
        assert [row.metadata["advantage"] for row in rows] == list(logs["advantages"])
        assert "ground_truth" in rows[0].metadata


# ---- repeat mode


@pytest.mark.parametrize("scope", ["generated", "scored"])
@pytest.mark.parametrize("batch", [4, 2, 8])
def test_repeat_fits_the_live_batch(train_trl, cassette, scope, batch):
    """Whole groups are gone through again, or left out; the trainer goes on with them."""
    options = scoped(scope, cassette)
    config = {"max_steps": 3, "eval_strategy": "no", "dropout": 0.0}
    train_trl(rc.record([0], **options), **config)
    recorded = rc.open_cassette(cassette)[0].response["output"]
    got = []
    kept = train_trl(
        rc.replay(mode="repeat", **options),
        seen_by(got, options["adapters"]),
        per_device_train_batch_size=batch,
        **config,
    )
    assert kept.session.played == [0, 1, 2]
    assert kept.generations == 0
    name = 1 if scope == "generated" else "completion_ids"
    rows = [tuple(map(int, ids)) for ids in recorded[name]]
    expected = {2: rows[:4], 4: rows, 8: rows + rows}[batch]
    assert [[tuple(map(int, ids)) for ids in output[name]] for output in got] == [expected] * 3
    if scope == "scored":
        tokens = sum(int(mask.sum()) for mask in got[0]["completion_mask"])
        assert got[0]["num_items_in_batch"] == tokens


def seen_by(got, adapter):
    """Return a trainer that keeps what the adapter's entry point returns."""
    import trl

    method = adapter.entry_points[0].qualname.rpartition(".")[2]

    class Watching(trl.GRPOTrainer):
        def __getattribute__(self, name):
            found = super().__getattribute__(name)
            if name != method:
                return found

            def call(*args):
                got.append(found(*args))
                return got[-1]

            return call

    return Watching
