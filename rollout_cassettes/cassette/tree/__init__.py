"""A batch as a tree: split into named tensors and a msgpack-able skeleton, and joined again.

The skeleton holds ``None``, booleans, 64-bit integers, floats, strings, bytes and lists as they
are, and dicts with string keys as maps. Everything else is a *node*: a map with the entry ``$``
that names its kind, such as ``{"$": "torch.tensor", "key": "response/input_ids"}``.
docs/format.md lists the kinds.
"""

from rollout_cassettes.cassette.tree import classes as _classes
from rollout_cassettes.cassette.tree import python as _python
from rollout_cassettes.cassette.tree.codec import register_codec
from rollout_cassettes.cassette.tree.joiner import Omitted, join
from rollout_cassettes.cassette.tree.plain import plain
from rollout_cassettes.cassette.tree.splitter import Omission, Split, split

_ = (_python, _classes)  # importing them enters their codecs into the table

__all__ = ["Omission", "Omitted", "Split", "join", "plain", "register_codec", "split"]
