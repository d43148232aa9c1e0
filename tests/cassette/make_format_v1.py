"""Make `cassettes/format-v1`: one interaction for each kind of value, in version 1 of the format.

    python -m tests.cassette.make_format_v1

It is made once, and frozen: the format must go on reading it. So it refuses to make it again.
"""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import pathlib
import uuid
import zoneinfo
from collections import OrderedDict, defaultdict, deque
from contextlib import closing

import numpy as np
import torch
from PIL import Image
from tensordict import LazyStackedTensorDict, NonTensorData, NonTensorStack, TensorDict

from rollout_cassettes.cassette import Key
from rollout_cassettes.cassette.writer import Writer
from tests.cassette import samples
from tests.cassette.recording import write

DIRECTORY = pathlib.Path(__file__).parents[2] / "cassettes" / "format-v1"

#: The directories, and how their tensors are compressed.
COMPRESSIONS = {"zstd": "zstd", "plain": None}

REQUEST = [{"prompt": "What is 1 plus 2?", "index": 7}, {"prompt": "And 2 plus 2?", "index": 8}]


def python_values():
    """Give every kind of Python's own library."""
    summer = dt.datetime(2026, 10, 25, 2, 30, fold=1)
    return {
        "none": None,
        "truths": [True, False],
        "integers": [0, -1, 2**63 - 1, -(2**63), 2**64 - 1, 2**64, -(10**40)],
        "floats": [0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan"), 5e-324],
        "text": ["", "ascii", "日本語 🎞", "\ud800", "a\x00b"],
        "bytes": [b"", b"\x00\xff", bytearray(b"mutable")],
        "complex": complex(1.5, float("-inf")),
        "sequences": [(), (1, (2,)), deque([1, 2], maxlen=3), deque(), range(1, 9, 2)],
        "slice": slice(None, 3),
        "ellipsis": ...,
        "sets": [set(), {1, 2, 3}, frozenset({"a", "b"})],
        "mappings": [
            {1: "one", (2, 3): "two", None: None},
            {"$": "a dict with the key of nodes"},
            OrderedDict(b=1, a=2),
            defaultdict(list, a=[1]),
            defaultdict(None),
        ],
        "moments": [
            summer.replace(tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
            summer.replace(tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30), "IST")),
            dt.datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=dt.timezone.utc),
            dt.time(3, 4, 5),
            dt.date(2026, 1, 2),
            dt.timedelta(days=-1, microseconds=1),
            dt.timezone.utc,
        ],
        "numbers": [decimal.Decimal("1.10"), fractions.Fraction(1, 3), uuid.UUID(int=7)],
        "paths": [pathlib.PurePosixPath("/a/b"), pathlib.PureWindowsPath("C:\\a")],
    }


def classes():
    """Give members and instances of classes that users write."""
    late = samples.Late(1)
    late.computed = 2
    sample = samples.Sample("prompt", 0.5)
    sample.extra = "an attribute beside the fields"
    return {
        "enums": [samples.Colour.RED, samples.Priority.HIGH, samples.Role.USER],
        "flags": [samples.Permission.READ, samples.Permission.READ | samples.Permission.RUN],
        "tuples": [samples.Point(1, 2), samples.Turn("user", ["hello"])],
        "dataclasses": [sample, samples.Frozen(1), samples.Slotted(1, 2), late],
        "nested": samples.Outer.Inner({"deep": torch.arange(2)}),
    }


def numpy_values():
    """Give arrays, scalars and dtypes of numpy."""
    structured = np.array([(1, 2.0, "x")], dtype=[("a", "<i4"), ("b", "<f8", (1,)), ("c", "<U2")])
    objects = np.empty((2, 2), dtype=object)
    objects[:] = [["a", [1, 2]], [None, {"k": np.arange(2)}]]
    plain = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
    return {
        "plain": {name: np.array([0, 1, 2]).astype(name) for name in plain},
        "others": [
            np.array([1 + 2j], dtype="c8"),
            np.array([1.5], dtype=">f8"),
            np.array(["2026-01-02", "NaT"], dtype="M8[D]"),
            np.array(["text", ""]),
            np.array([b"bytes"]),
            structured,
        ],
        "shapes": [np.float32(1).reshape(()), np.empty((0, 3)), np.arange(6).reshape(2, 3).T],
        "objects": objects,
        "scalars": [
            np.float32(0.1),
            np.int64(-1),
            np.bool_(True),
            np.str_("text"),
            np.complex64(1j),
        ],
        "dtypes": [np.dtype("<f4"), np.dtype(object)],
    }


def torch_values():
    """Give tensors of every dtype and layout, and what describes them."""
    plain = (
        torch.bool, torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32,
        torch.uint64, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64,
        torch.float8_e4m3fn, torch.float8_e5m2, torch.complex64, torch.complex128,
    )  # fmt: skip
    shared = torch.arange(4.0)
    rows = [torch.arange(2.0), torch.arange(0.0), torch.arange(3.0)]
    return {
        "dtypes": {str(dtype): torch.tensor([0, 1, 2]).to(dtype) for dtype in plain},
        "shapes": [torch.tensor(7), torch.empty(2, 0), torch.arange(6).view(2, 3).T],
        "shared": [shared, shared, shared[1:]],
        "gradients": [torch.ones(1, requires_grad=True), torch.nn.Parameter(torch.ones(1))],
        "jagged": torch.nested.as_nested_tensor(rows, layout=torch.jagged),
        "nested": torch.nested.nested_tensor([torch.ones(1, 2), torch.ones(2, 2)]),
        "names": [torch.bfloat16, torch.device("cuda:1"), torch.Size([2, 3]), torch.strided],
    }


def containers():
    """Give tensordict's containers."""
    batch = TensorDict(
        {"ids": torch.arange(4).view(2, 2), "inner": TensorDict({"x": torch.zeros(2)}, [2])},
        batch_size=[2],
        names=["row"],
    )
    batch["shared"] = NonTensorData({"k": 1}, batch_size=[2])
    batch["each"] = NonTensorStack("first", {"second": [None]})
    return {
        "batch": batch,
        "locked": TensorDict({"x": torch.ones(1)}, []).lock_(),
        "lazy": LazyStackedTensorDict(
            TensorDict({"x": torch.zeros(2)}, []),
            TensorDict({"x": torch.zeros(3)}, []),
            stack_dim=0,
        ),
        "square": NonTensorStack(NonTensorStack("a", "b"), NonTensorStack("c", "d")),
    }


def image():
    """Give an image."""
    return Image.linear_gradient("L").resize((5, 4))


def names():
    """Give names that a path must escape."""
    return {"empty": {}, "": [], "a/b~c": torch.arange(3)}


#: What makes the response of each interaction.
RESPONSES = {
    Key(1): python_values,
    Key(2): classes,
    Key(3): numpy_values,
    Key(4): torch_values,
    Key(5): containers,
    Key(5, "val"): image,
    Key(5, "val", 1, 3): names,
}


def make(directory, compression):
    """Write all interactions into a directory."""
    with closing(Writer(directory, compression)) as writer:
        for key, response in RESPONSES.items():
            write(
                writer,
                key,
                response(),
                REQUEST,
                fingerprint=["00" * 32, "11" * 32],
                metadata={"note": "frozen"},
            )


def main():
    """Make the frozen directory."""
    if DIRECTORY.exists():
        raise SystemExit(f"{DIRECTORY} is frozen: it is there to be read, not to be made again.")
    for name, compression in COMPRESSIONS.items():
        make(DIRECTORY / name, compression)


if __name__ == "__main__":
    main()
