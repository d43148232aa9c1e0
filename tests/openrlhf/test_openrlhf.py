"""The generator of samples, called as OpenRLHF's trainers call it."""

from __future__ import annotations

import random

import pytest

import rollout_cassettes as rc
from tests.openrlhf.conftest import plain

OPTIONS = {
    "plain": {},
    "more than a batch at once": {"vllm_generate_batch_size": 5},
    "filtered": {"filtering": True},
}

options = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)


def fit(generator, calls=None):
    """Call it until the prompts are at their end; return all, and where the loader was."""
    log = []
    while calls is None or len(log) < calls:
        samples, rate, drawn, is_exhausted = generator.generate_samples()
        place = generator.prompts_dataloader.position
        waiting = plain(generator._sample_buffer)
        log.append([plain(samples), rate, drawn, is_exhausted, place, waiting])
        if is_exhausted:
            break
    return log


def asked(generator):
    return generator.vllm_engines[0].prompts


@options
@pytest.mark.parametrize("prompts", ["abcdefgh", "abcdefghi", "abc"])
def test_a_replay_gives_what_the_engines_made(generator, path, options, prompts):
    """And leaves the data set, the buffer and the end of the prompts as a live run does."""
    with rc.record(path=path) as session:
        live = fit(generator(prompts, **options))
    assert session.recorded == list(range(1, len(live) + 1))
    replayed = generator(prompts, **options)
    with rc.replay(path=path) as session:
        assert fit(replayed) == live
    assert asked(replayed) == []
    assert session.played == list(range(1, len(live) + 1))


@options
def test_recording_changes_nothing(generator, path, options):
    """Looking ahead at the prompts draws none."""
    random.seed(1)
    bare = generator("abcdefghijklm", **options)
    expected = fit(bare)
    random.seed(1)
    recorded = generator("abcdefghijklm", **options)
    with rc.record(path=path):
        assert fit(recorded) == expected
    assert asked(recorded) == asked(bare)


@options
def test_what_is_not_recorded_goes_on_live(generator, path, options):
    """With the prompts and the waiting samples that a live run would have then."""
    random.seed(1)
    with rc.record(path=path, steps="1-2"):
        live = fit(generator("abcdefghijklm", **options))
    random.seed(1)
    replayed = generator("abcdefghijklm", **options)
    with rc.replay(path=path, on_miss="generate") as session:
        assert fit(replayed) == live
    assert session.played == [1, 2]


def test_a_second_episode_begins_anew(generator, path):
    with rc.record(path=path):
        recorded = generator("abc")
        live = [fit(recorded), fit(recorded)]
    replayed = generator("abc")
    with rc.replay(path=path):
        assert [fit(replayed), fit(replayed)] == live


def test_random_generators_are_left_where_generating_left_them(generator, path):
    random.seed(1)
    with rc.record(path=path):
        fit(generator(), calls=2)
    expected = random.random()
    random.seed(1)
    with rc.replay(path=path):
        fit(generator(), calls=2)
    assert random.random() == expected


def test_evaluation_is_live_unless_it_is_named(generator, path):
    def run(each):
        each = generator() if each is None else each
        log = fit(each, calls=1)
        log.append(plain(each.generate_eval_samples(n_samples_per_prompt=1)))
        return log + fit(each, calls=1)

    with rc.record(path=path / "train"):
        run(None)
    assert [str(key) for key in rc.open_cassette(path / "train").keys] == ["step 1", "step 2"]

    with rc.record(path=path / "all", phases=("train", "val")):
        live = run(None)
    keys = [str(key) for key in rc.open_cassette(path / "all").keys]
    assert keys == ["step 1", "step 1 (val)", "step 2"]
    assert len(live[1]) == 3
    replayed = generator()
    with rc.replay(path=path / "all", phases=("train", "val")):
        assert run(replayed) == live
    assert asked(replayed) == []
    assert replayed.eval_dataloader.position == 0


def test_another_prompt_is_a_mismatch(generator, path):
    """The row and the field are named, and no engine is asked."""
    with rc.record(path=path):
        fit(generator("abcd"))
    replayed = generator("abxd")
    with rc.replay(path=path), pytest.raises(rc.RequestMismatchError, match="row 0") as caught:
        fit(replayed)
    assert (caught.value.step, caught.value.field) == (2, "prompt")
    assert asked(replayed) == []


def test_other_data_behind_the_same_prompts_is_an_error(generator, path):
    """Of filtered prompts only those are compared that were drawn first."""
    recorded = generator("abcd", filtering=True)
    recorded.vllm_engines[0].rewards = {"a": [0.0, 0.0], "b": [0.0, 1.0], "c": [0.0, 1.0]}
    with rc.record(path=path):
        assert fit(recorded, calls=1)[0][2] == 3
    with rc.replay(path=path), pytest.raises(rc.CassetteError, match="drew 3 prompts, and 2 are"):
        fit(generator("ab", filtering=True))


def test_more_data_than_was_recorded_is_an_error(generator, path):
    options = {"batch_size": 4}
    with rc.record(path=path):
        fit(generator("abc", **options))
    with (
        rc.replay(path=path, on_mismatch="warn"),
        pytest.raises(rc.CassetteError, match="there are more"),
    ):
        fit(generator("abcdefgh", **options))


def test_a_missing_call_is_a_miss(generator, path):
    with rc.record(path=path):
        fit(generator(), calls=1)
    with rc.replay(path=path), pytest.raises(rc.StepNotRecordedError):
        fit(generator(), calls=2)


def test_a_run_that_is_resumed_says_where_it_goes_on(generator, path):
    """The calls of a process are counted from 1: without the step, the prompts don't match."""
    with rc.record(path=path):
        live = fit(generator("abcdefgh"))
    with rc.replay(path=path), pytest.raises(rc.RequestMismatchError):
        fit(generator("efgh"))
    replayed = generator("efgh")
    with rc.replay(path=path) as session:
        for call in (3, 4):
            session.step = call
            ((samples, *_),) = fit(replayed, calls=1)
            assert samples == live[call - 1][0]


def test_an_error_of_the_engine_comes_through(generator, path):
    """Nothing is recorded of the call, and the next one draws on."""
    failing = generator("abcd")
    remote = failing.vllm_engines[0].generate_responses.remote
    calls = []

    def fails_once(**options):
        calls.append(options)
        if len(calls) == 1:
            raise ConnectionError("no engine")
        return remote(**options)

    failing.vllm_engines[0].generate_responses.remote = fails_once
    with rc.record(path=path) as session:
        with pytest.raises(ConnectionError, match="no engine"):
            failing.generate_samples()
        assert session.recorded == []
        failing.generate_samples()
    assert session.recorded == [1]


@pytest.mark.parametrize("size", [1, 3])
def test_repeat_mode_fits_whole_groups(generator, path, size):
    """And draws the prompts of the live run, to their end."""
    with rc.record(path=path):
        live = fit(generator("abcd"), calls=2)
    replayed = generator("abcdefg", batch_size=size)
    with rc.replay(path=path, mode="repeat"):
        again = fit(replayed)
    assert sum(drawn for _, _, drawn, *_ in again) == 7
    assert [is_exhausted for *_, is_exhausted, _, _ in again].count(True) == 1
    groups = [live[0][0][:2], live[0][0][2:]]
    assert again[0][0] == [sample for at in range(size) for sample in groups[at % 2]]
    assert asked(replayed) == []
    first = replayed.generate_samples  # a new episode
    with rc.replay(path=path, mode="repeat"):
        samples = first()[0]
    assert len({id(sample) for sample in samples}) == len(samples)


def test_repeat_mode_draws_no_more_than_is_generated_at_once(generator, path):
    """Which may be less than a batch (vllm_generate_batch_size): that is no end of the prompts."""
    with rc.record(path=path):
        live = fit(generator("abcd"), calls=1)
    replayed = generator("abcdefg", batch_size=4, vllm_generate_batch_size=3)
    with rc.replay(path=path, mode="repeat"):
        again = fit(replayed)
    assert [drawn for _, _, drawn, *_ in again] == [3, 3, 1]
    assert [len(samples) for samples, *_ in again] == [6, 6, 2]
    assert again[0][0] == live[0][0] + live[0][0][:2]


def test_repeat_mode_fits_evaluations(generator, path):
    with rc.record(path=path, phases="val"):
        live = plain(generator(evaluated="xy").generate_eval_samples())
    with rc.replay(path=path, phases="val", mode="repeat"):
        again = plain(generator(evaluated="xyz").generate_eval_samples())
    assert again == [*live, *live[:2]]


def test_what_was_recorded_is_seen_as_trajectories(generator, path):
    """Read without OpenRLHF."""
    with rc.record(path=path):
        live = fit(generator(), calls=1)[0][0]
    rows = rc.open_cassette(path)[1].trajectories
    assert [row.prompt for row in rows] == ["a", "a", "b", "b"]
    assert [row.place[:2] for row in rows] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert rows[0].prompt_ids.tolist() == [1, 2]
    for row, sample in zip(rows, live, strict=True):
        assert row.response_ids.tolist() == sample["sequences"][1][0][2:]
        assert row.log_probs.tolist() == sample["rollout_log_probs"][1][0][1:]
        assert row.mask.all()
        assert row.score == sample["rewards"][1][0]
        assert row.metadata["label"] == row.prompt.upper()
