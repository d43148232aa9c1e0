"""Codecs of users' own types."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
import torch

from rollout_cassettes.cassette import register_codec, tree
from rollout_cassettes.cassette.tree import codec
from rollout_cassettes.errors import UnstorableValueError
from tests.cassette.round_trip import SOURCE, plain, round_trip, stored


class Tokens:
    """A type of a user's."""

    def __init__(self, ids):
        self.ids = ids


class MoreTokens(Tokens):
    """A subclass of it."""


pytestmark = pytest.mark.usefixtures("fresh_table")


def register(cls=Tokens, **options):
    register_codec(
        cls, lambda tokens: {"ids": tokens.ids}, lambda data: cls(data["ids"]), **options
    )


def test_a_registered_type_comes_back():
    register()
    again = round_trip([Tokens(torch.arange(3))])[0]
    assert type(again) is Tokens
    assert again.ids.tolist() == [0, 1, 2]


def test_its_tensors_are_found_by_path():
    register()
    skeleton, data = stored({"tokens": Tokens(torch.arange(3))})
    assert list(data) == ["response/tokens/ids"]
    assert skeleton["tokens"]["$"] == f"custom.{__name__}.Tokens"


def test_a_subclass_is_another_type():
    register()
    with pytest.raises(UnstorableValueError):
        round_trip(MoreTokens([1]))


def test_a_type_that_is_not_registered_where_it_is_read_is_named(monkeypatch):
    register(name="tokens/v1")
    skeleton, data = stored(Tokens([1]))
    monkeypatch.delitem(codec._by_kind, "custom.tokens/v1")
    with pytest.raises(UnstorableValueError, match=r"register_codec\(\.\.\., name='tokens/v1'\)"):
        tree.join(skeleton, data, source=SOURCE)
    assert tree.plain(skeleton, data, source=SOURCE) == {"ids": [1]}


def test_another_type_cannot_take_a_name():
    register(name="tokens")
    with pytest.raises(ValueError, match="another type is registered as 'tokens'"):
        register(MoreTokens, name="tokens")


def test_a_type_can_be_registered_again():
    register(name="tokens")
    register_codec(Tokens, lambda tokens: tokens.ids, Tokens, name="tokens")
    assert round_trip(Tokens((1, 2))).ids == (1, 2)


def test_a_registered_type_goes_before_the_library():
    """Also where its library's codecs were not loaded yet."""
    register_codec(np.ndarray, lambda array: array.tolist(), np.array, name="as_list")
    skeleton, data = stored(np.arange(2))
    assert skeleton == {"$": "custom.as_list", "data": [0, 1]}
    assert len(data) == 0


def test_a_registered_subclass_of_a_known_type_is_stored_by_its_codec():
    class Stamp(dt.datetime):
        pass

    register_codec(Stamp, lambda stamp: stamp.timestamp(), Stamp.fromtimestamp, name="stamp")
    assert type(round_trip(Stamp(2026, 1, 1))) is Stamp


def test_an_encoder_that_fails_leaves_the_value_out_and_says_why():
    register_codec(Tokens, lambda tokens: 1 / 0, Tokens)
    parts = tree.split({"a": Tokens([1]), "b": 1}, "response")
    assert parts.skeleton["b"] == 1
    assert parts.omissions == [
        (
            "response/a",
            f"{__name__}.Tokens",
            "taking it apart raised ZeroDivisionError('division by zero')",
        )
    ]


def test_a_decoder_that_fails_is_not_taken_for_damage():
    register_codec(Tokens, lambda tokens: tokens.ids, lambda ids: ids["no such"])
    with pytest.raises(UnstorableValueError, match="its registered decoder raised TypeError"):
        round_trip(Tokens([1]))


def test_an_encoder_that_returns_the_value_itself_is_refused():
    register_codec(Tokens, lambda tokens: tokens, Tokens)
    with pytest.raises(UnstorableValueError, match="it contains itself"):
        round_trip(Tokens([1]))


def test_a_registered_type_is_what_its_encoder_gave_where_no_class_is_wanted():
    register()
    assert plain(Tokens([1])) == {"ids": [1]}


@pytest.mark.parametrize("given", [(5, vars, Tokens), (Tokens, None, Tokens), (Tokens, vars, "")])
def test_what_is_no_type_and_no_function_is_refused(given):
    """When it is registered, and not when a training comes to need it."""
    with pytest.raises(TypeError, match="a type and two functions are needed"):
        register_codec(*given)
