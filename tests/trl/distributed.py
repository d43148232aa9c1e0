"""A training in several processes, run by `torchrun` for `test_distributed`.

    torchrun --nproc_per_node 2 distributed.py FOLDER

For each scope it trains with a recording session, and again with a replaying one, and saves what
each process got as `FOLDER/SCOPE-RANK.json`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import rollout_cassettes as rc
from tests.trl.training import Training

#: A group of four is spread over both processes. Trainers make accelerate's process group.
CONFIG = {
    "ddp_backend": "gloo",
    "per_device_train_batch_size": 1,
    "per_device_eval_batch_size": 2,
    "max_steps": 4,
}


def main(folder: Path) -> None:
    rank = os.environ["RANK"]
    train = Training(folder / f"of-rank-{rank}")
    for scope in ("generated", "scored"):
        options = {
            "path": folder / scope,
            "adapters": rc.adapters.TrlTrainer(scope=scope),
            "phases": ("train", "val"),
        }
        live = train(rc.record(**options), **CONFIG)
        again = train(rc.replay(**options, on_unplayed="error"), **CONFIG)
        found = {
            "equal": again.is_equal(live),
            "logs": again.trainer._logs == live.trainer._logs,
            "generations": [live.generations, again.generations],
            "processes": again.trainer.accelerator.num_processes,
        }
        (folder / f"{scope}-{rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
