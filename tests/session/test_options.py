"""What the user gives is checked at the with-statement, and refused with what is known."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import rollout_cassettes as rc
from rollout_cassettes.session import options


@pytest.mark.parametrize(
    ("make", "option", "value", "known"),
    [
        (rc.record, "on_existing", "overwright", "'error', 'skip', 'overwrite'"),
        (rc.record, "on_unstorable", "ignore", "'warn', 'error'"),
        (rc.record, "compression", "gzip", "'zstd' or None"),
        (rc.replay, "mode", "cash", "'cache', 'repeat'"),
        (rc.replay, "on_miss", True, "'error', 'generate', 'record'"),
        (rc.replay, "on_mismatch", None, "'error', 'warn'"),
        (rc.replay, "on_unplayed", "warning", "'ignore', 'warn', 'error'"),
        (rc.use_cassette, "record_mode", "new_episodes", "'none', 'new_steps', 'all', 'rewrite'"),
        (rc.use_cassette, "on_mismatch", "no", "'error', 'warn'"),
        (rc.use_cassette, "compression", 9, "'zstd' or None"),
        (rc.replay, "device", "cdua", "one that torch knows"),
    ],
)
def test_an_unknown_word_is_refused_with_the_known_ones(make, option, value, known):
    with pytest.raises(ValueError, match="got") as caught:
        make(**{option: value})
    assert str(caught.value).startswith(option)
    assert known in str(caught.value)


def test_a_word_that_is_close_is_guessed():
    with pytest.raises(ValueError, match=r"did you mean 'overwrite'\?"):
        rc.record(on_existing="overwright")


def test_an_unknown_option_is_refused():
    with pytest.raises(TypeError, match="on_exist"):
        rc.record(on_exist="error")


@pytest.mark.parametrize("make", [rc.replay, rc.use_cassette])
@pytest.mark.parametrize("value", ["no", 0, None])
def test_a_truth_value_is_one(make, value):
    with pytest.raises(TypeError, match="restore_rng is True or False"):
        make(restore_rng=value)


# ---- the path


def test_the_path_is_given_or_from_the_environment_or_the_default(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROLLOUT_CASSETTES_PATH", raising=False)
    assert options.cassette_path(None) == tmp_path / "cassettes" / "default"
    monkeypatch.setenv("ROLLOUT_CASSETTES_PATH", "elsewhere")
    assert options.cassette_path(None) == tmp_path / "elsewhere"
    assert options.cassette_path("given") == tmp_path / "given"
    monkeypatch.setenv("ROLLOUT_CASSETTES_PATH", "")
    assert options.cassette_path(None) == tmp_path / "cassettes" / "default"


def test_a_tilde_is_the_home_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert options.cassette_path("~/run") == tmp_path / "run"
    assert options.cassette_path(Path("~") / "run") == tmp_path / "run"


@pytest.mark.parametrize(("path", "error"), [("", ValueError), (3, TypeError), (b"run", TypeError)])
def test_what_is_no_path_is_refused(path, error):
    with pytest.raises(error):
        rc.record(path=path)


def test_record_and_replay_work_as_they_stand(monkeypatch, tmp_path, engine):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROLLOUT_CASSETTES_PATH", raising=False)

    @rc.adapters.function
    def generate():
        return engine.generate(["a"])

    with rc.record(1):
        live = generate()
    with rc.replay(1, mode="cache"):
        assert generate() == live
    assert rc.open_cassette("cassettes/default").steps == [1]


def test_changing_the_working_directory_does_not_move_the_cassette(
    monkeypatch, tmp_path, engine, counted
):
    """As Hydra does with `hydra.job.chdir`."""
    monkeypatch.chdir(tmp_path)
    with rc.record(path="run", adapters=counted):
        (tmp_path / "outputs").mkdir()
        monkeypatch.chdir(tmp_path / "outputs")
        engine.generate(["a"])
    assert rc.open_cassette(tmp_path / "run").steps == [1]


# ---- adapters


def test_adapters_are_one_or_several(counted):
    assert options.adapters(None) is None
    assert options.adapters(counted) == [counted]
    assert options.adapters(iter([counted])) == [counted]


@pytest.mark.parametrize("given", [print, [print], 3])
def test_what_is_no_adapter_is_refused(given):
    with pytest.raises(TypeError):
        rc.record(adapters=given)


def test_an_adapter_that_intercepts_nothing_is_refused():
    with pytest.raises(ValueError, match="give it a target"):
        rc.replay(adapters=rc.adapters.function(step_of=lambda step: step))


def test_adapters_with_the_same_name_or_entry_point_are_refused(counted):
    with pytest.raises(ValueError, match="its own name; there twice: project_"):
        rc.record(adapters=[counted, rc.adapters.function("other:f", name=counted.name)])
    with pytest.raises(ValueError, match="its own entry point; there twice: project_"):
        rc.record(adapters=[counted, rc.adapters.function(counted.name, name="other")])


# ---- metadata


def test_metadata_is_copied_and_written_into_every_manifest(path, engine, counted):
    metadata = {"revision": "abc", "tags": ["a", ("b", 1)], "nested": {"lr": 1e-6, "none": None}}
    with rc.record(path=path, adapters=counted, metadata=metadata):
        metadata["revision"] = "changed"
        engine.generate(["a"])
        engine.generate(["b"])
    for step in (1, 2):
        assert rc.open_cassette(path)[step].manifest.metadata == {
            "revision": "abc",
            "tags": ["a", ["b", 1]],
            "nested": {"lr": 1e-6, "none": None},
        }


@pytest.mark.parametrize(
    ("metadata", "where"),
    [
        ("text", "a mapping"),
        ({1: "one"}, "a mapping"),
        ({"weights": torch.zeros(2)}, r"metadata\['weights'\] is tensor"),
        ({"a": [{"b": {1: 2}}]}, r"metadata\['a'\]\[0\]\['b'\]"),
        ({"path": Path("run")}, r"metadata\['path'\]"),
        ({"big": 2**64}, r"metadata\['big'\]"),
    ],
)
def test_metadata_that_is_not_plain_is_refused(metadata, where):
    for make in (rc.record, rc.use_cassette):
        with pytest.raises(TypeError, match=where):
            make(metadata=metadata)


# ---- adapters by name


def test_an_adapter_may_be_named():
    """One or several; a wrong name is told with those that there are."""
    known = rc.adapters.registered()
    assert options.adapters("verl_v1") == [known["verl_v1"]]
    assert options.adapters(["trl", "verl_v0"]) == [known["trl"], known["verl_v0"]]
    with pytest.raises(ValueError, match=r"did you mean 'trl_scored'.*there are .*verl_v1"):
        rc.record(adapters="trl_score")


def test_an_adapter_that_is_not_for_all_sessions_is_used_where_it_is_named(path):
    """TRL's two scopes hold the same rollouts: one of them is enough."""
    with rc.record(path=path) as session:
        names = {adapter.name for adapter in session._in_use()}
    assert "trl" in names
    assert "trl_scored" not in names
    (named,) = options.adapters("trl_scored")
    assert named.scope == "scored"
