"""What is recorded or replayed where no with-block says it: names, words, and where from."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

import rollout_cassettes as rc
from rollout_cassettes import configuration
from rollout_cassettes.configuration import MODES, RUN_VARIABLE, Configuration, options_of

ORIGIN = "cassettes in verl's configuration"


def parse(**given):
    return Configuration.parse(given, ORIGIN)


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    """A developer's own environment is none of the tests' business."""
    for variable in (RUN_VARIABLE, "ROLLOUT_CASSETTES_PATH"):
        monkeypatch.delenv(variable, raising=False)


# ---- names


@pytest.mark.parametrize("mode", MODES)
def test_every_parameter_is_an_option(mode):
    parameters = set(inspect.signature(MODES[mode]).parameters)
    assert {option.parameter for option in options_of(mode).values()} == parameters


def test_the_mode_of_a_replay_has_a_name_of_its_own():
    assert options_of("replay")["replay_mode"].words == ("cache", "repeat")
    assert all("mode" not in options_of(mode) for mode in MODES)


def test_words_come_from_the_signature():
    assert options_of("record")["on_existing"].words == ("error", "skip", "overwrite")
    assert options_of("record")["compression"].words == ("zstd",)
    assert options_of("record")["compression"].takes_none
    assert not options_of("replay")["on_miss"].takes_none
    assert options_of("replay")["restore_rng"].is_switch
    assert options_of("replay")["phases"].is_list
    assert options_of("replay")["adapters"].is_list
    assert not options_of("replay")["steps"].is_list


def test_an_unknown_option_is_refused_with_those_that_are_known():
    with pytest.raises(rc.CassetteError) as caught:
        parse(mode="replay", on_mis="error")
    assert ORIGIN in caught.value.what
    assert "'on_mis'" in caught.value.what
    assert caught.value.fixes[0] == "Did you mean on_miss?"
    assert all(name in caught.value.fixes[-1] for name in options_of("replay"))


def test_an_option_of_another_mode_is_refused_and_says_where_it_goes():
    with pytest.raises(rc.CassetteError, match="on_miss goes with mode=replay"):
        parse(mode="record", on_miss="error")


@pytest.mark.parametrize("mode", [None, "rplay", 3, ["record"]])
def test_an_unknown_mode_is_refused_with_those_that_are_known(mode):
    with pytest.raises(rc.CassetteError, match="record, replay, use"):
        parse(mode=mode)


@pytest.mark.parametrize("given", ["replay", ["record"], 3])
def test_what_is_no_mapping_is_refused(given):
    with pytest.raises(rc.CassetteError, match="mode=replay path="):
        Configuration.parse(given, ORIGIN)


# ---- values


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mode": "replay", "on_miss": "recrod"}, "did you mean 'record'"),
        ({"mode": "replay", "on_miss": None}, "on_miss is one of"),
        ({"mode": "replay", "replay_mode": "loop"}, "replay_mode is one of 'cache', 'repeat'"),
        ({"mode": "replay", "restore_rng": "no"}, "restore_rng is True or False"),
        ({"mode": "replay", "steps": "3-1"}, "run backwards"),
        ({"mode": "record", "steps": [1, "two"]}, "a step is a whole number"),
        ({"mode": "record", "path": 3}, "path"),
        ({"mode": "record", "path": ""}, "path is empty"),
        ({"mode": "record", "compression": "gzip"}, "compression is one of 'zstd'"),
        ({"mode": "record", "metadata": "abc"}, "metadata is a mapping"),
        ({"mode": "record", "phases": ["train", 3]}, "phases takes words"),
        ({"mode": "use", "record_mode": "twice"}, "record_mode is one of"),
    ],
)
def test_a_wrong_value_is_refused_before_a_session_is_made(values, message):
    with pytest.raises(rc.CassetteError, match=message) as caught:
        parse(**values)
    assert ORIGIN in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        {"mode": "record"},
        {
            "mode": "record",
            "compression": None,
            "steps": None,
            "metadata": {"git": "abc", "n": [1]},
        },
        {"mode": "replay", "steps": [1, 2, 3], "replay_mode": "repeat", "restore_rng": False},
        {"mode": "use", "steps": "1-3,8", "record_mode": "new_steps", "device": "cpu"},
    ],
)
def test_what_is_right_survives_the_environment(values, monkeypatch):
    written = parse(**values).to_json()
    assert json.loads(written) == values
    monkeypatch.setenv(RUN_VARIABLE, written)
    read = Configuration.from_environment()
    assert (read.mode, read.values) == (values["mode"], parse(**values).values)
    assert RUN_VARIABLE in read.origin


@pytest.mark.parametrize("text", [None, ""])
def test_an_environment_may_say_nothing(text, monkeypatch):
    if text is not None:
        monkeypatch.setenv(RUN_VARIABLE, text)
    assert Configuration.from_environment() is None


@pytest.mark.parametrize("text", ["record", "{", '"record"', '{"mode": "record", "stps": 3}'])
def test_an_environment_that_can_not_be_read_is_refused(text, monkeypatch):
    monkeypatch.setenv(RUN_VARIABLE, text)
    with pytest.raises(rc.CassetteError, match=RUN_VARIABLE):
        Configuration.from_environment()


# ---- the path


def test_a_relative_path_counts_from_a_directory(tmp_path, monkeypatch):
    assert parse(mode="record", path="a/b").under(tmp_path).path == tmp_path / "a/b"
    assert parse(mode="record", path="/a").under(tmp_path).path == Path("/a")
    assert parse(mode="record").under(tmp_path).path == tmp_path / "cassettes/default"
    monkeypatch.setenv("ROLLOUT_CASSETTES_PATH", "mine")
    assert parse(mode="record").under(tmp_path).path == tmp_path / "mine"
    monkeypatch.setenv("HOME", "/home/me")
    assert parse(mode="record", path="~/a").under(tmp_path).path == Path("/home/me/a")


# ---- the session


@rc.adapters.function(name="configured", request_of=list)
def generate(prompts):
    return [f"an answer to {prompt}" for prompt in prompts]


def test_each_mode_makes_its_session(tmp_path):
    """With the options given, under the names that its function has for them."""
    with parse(mode="record", path=str(tmp_path), steps="1-2", metadata={"a": 1}).session() as live:
        for prompt in "abc":
            generate([prompt])
    assert live.recorded == [1, 2]
    assert rc.open_cassette(tmp_path)[1].manifest.metadata == {"a": 1}
    repeat = parse(mode="replay", path=str(tmp_path), steps=[1, 5], replay_mode="repeat")
    with repeat.session() as again:
        assert generate(["a"]) == ["an answer to a"]
        again.step = 5
        assert generate(["b"]) == ["an answer to b"]
    assert again.played == [1, 5]
    with parse(mode="use", path=str(tmp_path)).session() as used:
        assert generate(["a"]) == ["an answer to a"]
    assert used.played == [1]


def test_what_only_this_machine_can_refuse_is_refused_when_the_session_is_made(tmp_path):
    configured = parse(mode="replay", path=str(tmp_path), device="abacus")
    with pytest.raises(rc.CassetteError, match=f"{ORIGIN}: device"):
        configured.session()


def test_it_imports_no_framework():
    """It is imported in every process that imports verl."""
    source = Path(configuration.__file__).read_text()
    assert not any(f"import {name}" in source for name in ("torch", "verl", "ray", "omegaconf"))


@pytest.mark.parametrize("given", ["verl_v0", ["verl_v0"]])
def test_adapters_are_named(given, tmp_path):
    """One or several; a name that there isn't is refused before anything starts."""
    with parse(mode="record", path=str(tmp_path), adapters=given).session() as session:
        assert [adapter.name for adapter in session._in_use()] == ["verl_v0"]
    with pytest.raises(rc.CassetteError, match=r"adapters: no adapter is named 'verl'"):
        parse(mode="replay", adapters="verl")
