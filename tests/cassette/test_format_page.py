"""`docs/format.md` is enough to write a reader: this one follows it, and uses nothing of ours."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cassette import make_format_v1 as frozen

PAGE = Path(__file__).parents[2] / "docs" / "format.md"

READER = '''
import sys

{code}

import numpy as np


def value(node, tensors):
    """Join what the test looks at, as the tables of kinds say."""
    if isinstance(node, list):
        return [value(item, tensors) for item in node]
    if not isinstance(node, dict):
        return node
    if "$" not in node:
        return {{key: value(item, tensors) for key, item in node.items()}}
    kind = node["$"]
    if kind == "int":
        return int.from_bytes(node["little_endian"], "little", signed=True)
    if kind == "numpy.array" and "objects" not in node:
        data = tensors[node["key"]]
        return data if "dtype" not in node else data.view(node["dtype"]).reshape(node["shape"])
    if kind == "torch.tensor" and "jagged" in node:
        parts = {{name: value(part, tensors) for name, part in node["jagged"].items()}}
        ends = parts["offsets"][1:]
        return [parts["values"][a:b] for a, b in zip(parts["offsets"], ends)]
    if kind == "torch.tensor":
        data = tensors[node["key"]]
        if "dtype" in node:
            data = data.view(node["dtype"]).reshape(node["shape"])
        return data
    if kind == "tensordict.TensorDict":
        return {{name: value(field, tensors) for name, field in node["fields"].items()}}
    return node


directory = Path(sys.argv[1])
manifest, skeletons, tensors = read(directory / "step-000001.msgpack")
assert manifest["step"] == 1 and manifest["phase"] == "train" and manifest["rank"] == 0
assert manifest["metadata"] == {{"note": "frozen"}}
assert skeletons["request"][0]["prompt"] == "What is 1 plus 2?"
python = value(skeletons["response"], tensors)
assert python["integers"][-1] == -(10**40) and python["text"][2].startswith("日本語")
assert [len(item["keys"]) for item in python["mappings"][:2]] == [3, 1]

_, skeletons, tensors = read(directory / "step-000003.msgpack")
others = value(skeletons["response"]["others"][:2], tensors)
assert others[0].tolist() == [1 + 2j] and others[1].tolist() == [1.5]
assert value(skeletons["response"]["plain"], tensors)["f4"].dtype == np.float32

_, skeletons, tensors = read(directory / "step-000005.msgpack")
batch = value(skeletons["response"]["batch"], tensors)
assert batch["ids"].tolist() == [[0, 1], [2, 3]]
assert sorted(tensors) == sorted(set(tensors)) and "response/batch/ids" in tensors

_, skeletons, tensors = read(directory / "step-000005.val.1.rank3.msgpack")
assert list(tensors) == ["response/a~1b~0c"]
assert value(skeletons["response"], tensors)["a/b~c"].tolist() == [0, 1, 2]

_, skeletons, tensors = read(directory / "step-000005.val.msgpack")
assert bytes(tensors[skeletons["response"]["key"]])[:4] == b"\\x89PNG"
assert not [name for name in sys.modules if name.split(".")[0] in ("rollout_cassettes", "torch")]
'''


def code_of_the_page():
    """Give its one block of Python."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return code


@pytest.mark.parametrize("name", frozen.COMPRESSIONS)
def test_the_code_of_the_page_reads_a_cassette(name, tmp_path):
    """With zstandard, safetensors and msgpack; neither this library nor torch is imported."""
    script = tmp_path / "reader.py"
    script.write_text(READER.format(code=code_of_the_page()))
    done = subprocess.run(
        [sys.executable, "-W", "error", script, frozen.DIRECTORY / name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_page_names_every_kind():
    """And no other: what is in the table of codecs is in the tables of the page."""
    import importlib

    from rollout_cassettes.cassette.tree import codec

    for module in codec._LIBRARIES.values():
        importlib.import_module(module)
    known = {kind for kind in codec._by_kind if not kind.startswith("custom.")}
    cells = re.findall(r"^\| (`[^|]*`) \|", PAGE.read_text(), re.MULTILINE)
    named = {name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)}
    assert known <= named
    prefixes = {"numpy", "torch", "tensordict", "PIL"}
    assert {name for name in named if name.split(".")[0] in prefixes} <= known


def test_the_page_names_every_entry_of_a_manifest():
    """In its tables and paragraphs."""
    from dataclasses import fields

    from rollout_cassettes.cassette.manifest import Manifest, TensorsFile
    from rollout_cassettes.cassette.packed import Packed

    text = PAGE.read_text()
    for cls in (Manifest, TensorsFile, Packed):
        for field in fields(cls):
            assert f"`{field.name}`" in text, field.name


def test_the_page_names_every_dtype():
    """That a tensors file may hold."""
    from rollout_cassettes.cassette.safetensors_file import DTYPES

    assert all(f"`{name}`" in PAGE.read_text() for name in DTYPES)
