"""Import of the dumps that verl's own SkipManager wrote, and of slime's debug data.

They are pickles, and this is the one place where the library loads any: only when the user said
so, and never when a cassette is recorded, read or replayed.

Source: verl 0.9.1, ``verl/utils/skip/``; slime 0.3.0, ``slime/observability/rollout_data_utils.py``.
"""

from rollout_cassettes.dumps.importer import Import, import_dumps

__all__ = ["Import", "import_dumps"]
