"""verl's and TransferQueue's batches, in trees."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tensordict import TensorDict

from tests import strategies
from tests.cassette.recording import record
from tests.cassette.round_trip import plain, round_trip
from tests.cassette.sameness import assert_same

pytestmark = [
    pytest.mark.verl,
    pytest.mark.filterwarnings("ignore:Ray state API is no longer experimental:DeprecationWarning"),
    pytest.mark.filterwarnings(r"ignore:\w+ engine is not available:UserWarning"),
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning"),
]


def proto(rows=2):
    from verl import DataProto

    return DataProto.from_dict(
        tensors={"input_ids": torch.arange(rows * 3).view(rows, 3)},
        non_tensors={"uid": np.array([f"row {row}" for row in range(rows)], dtype=object)},
        meta_info={"temperature": 1.0, "steps": {1, 2}, "timing": {"gen": 0.5}},
    )


@settings(max_examples=30)
@given(
    st.none() | strategies.tensordicts(strategies.leaves, depth=1),
    st.dictionaries(strategies.names, strategies.object_arrays(strategies.leaves), max_size=2),
    st.dictionaries(strategies.names, strategies.leaves, max_size=2),
)
def test_a_dataproto_comes_back_the_same(batch, non_tensor_batch, meta_info):
    from verl import DataProto

    value = object.__new__(DataProto)  # whose constructor wants lengths that match
    vars(value).update(batch=batch, non_tensor_batch=non_tensor_batch, meta_info=meta_info)
    assert_same(value, round_trip(value))


def test_a_dataproto_works_when_it_comes_back():
    again = round_trip(proto())
    assert again[1:].batch["input_ids"].tolist() == [[3, 4, 5]]
    assert len(again.union(round_trip(proto()))) == 2


def test_an_inconsistent_dataproto_comes_back_as_it_was():
    """The constructor's check is not run: what was recorded is what the trainer had."""
    batch = proto()
    batch.non_tensor_batch["odd"] = np.arange(5)
    assert_same(batch, round_trip(batch))


@settings(max_examples=30)
@given(
    st.lists(st.dictionaries(strategies.names, strategies.leaves, max_size=2), max_size=3),
    st.dictionaries(strategies.names, strategies.leaves, max_size=2),
)
def test_a_kv_batch_meta_comes_back_the_same(tags, extra):
    from transfer_queue import KVBatchMeta

    meta = KVBatchMeta(
        keys=[f"{number}_0_0" for number in range(len(tags))],
        tags=tags,
        partition_id="train",
        fields=["responses"],
        extra_info=extra,
    )
    assert_same(meta, round_trip(meta))


def test_batches_are_dicts_where_no_framework_is_wanted():
    again = plain(proto())
    assert again["batch"]["input_ids"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert again["non_tensor_batch"]["uid"].tolist() == ["row 0", "row 1"]
    assert again["meta_info"]["timing"] == {"gen": 0.5}


def test_a_recording_may_import_the_batches_of_our_adapters(tmp_path):
    """Whoever opens a cassette has seldom imported verl before."""
    record(tmp_path, {"proto": proto(), "nested": [TensorDict({"a": torch.ones(1)})]})
    script = f"""
        import warnings; warnings.simplefilter("ignore")
        import sys, rollout_cassettes
        response = rollout_cassettes.open_cassette({str(tmp_path)!r})[1].response
        assert type(response["proto"]) is sys.modules["verl.protocol"].DataProto
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
