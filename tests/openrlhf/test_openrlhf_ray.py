"""OpenRLHF's own generator and engines that are Ray actors, in a trainer that is one too."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.openrlhf.conftest import answers, make, plain

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(find_spec("openrlhf") is None, reason="needs OpenRLHF"),
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray"),
]


@pytest.fixture
def cluster(tmp_path):
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


@pytest.fixture
def trainer(cluster):
    """Make a trainer, as OpenRLHF's `PPOTrainer` is one: `trainer() -> a Ray actor`."""
    from tests.openrlhf import conftest

    class Engine:
        def __init__(self):
            self.count = 0

        def get_num_unfinished_requests(self):
            return 0

        def generate_responses(self, *, prompt, label, num_samples, **options):
            self.count += 1
            return answers(prompt, label, num_samples)

        def requests(self):
            return self.count

    class Trainer:
        def __init__(self, engines):
            self.engines = engines

        def fit(self, make_session):
            import sys
            from importlib import import_module
            from types import ModuleType

            for name, member in conftest.VLLM.items():
                sys.modules[name] = ModuleType(name)
                setattr(sys.modules[name], member, lambda *args, **kwargs: None)
            generator = make(import_module(conftest.MODULE), self.engines, "abcdef")
            with make_session() as session:
                log = [plain(generator.generate_samples()) for _ in range(3)]
            return log, session.played

    def made():
        engines = [cluster.remote(Engine).remote() for _ in range(2)]
        return cluster.remote(Trainer).remote(engines), engines

    return made


def test_a_block_in_the_trainers_process_replays(cluster, trainer, tmp_path):
    """The engines get no request, and what comes back has the recorded order."""
    import rollout_cassettes as rc

    path = str(tmp_path / "cassette")
    actor, engines = trainer()
    live, _ = cluster.get(actor.fit.remote(lambda: rc.record(path=path)))
    assert sum(cluster.get([each.requests.remote() for each in engines])) == 6
    actor, engines = trainer()
    again, played = cluster.get(actor.fit.remote(lambda: rc.replay(path=path)))
    assert again == live
    assert played == [1, 2, 3]
    assert sum(cluster.get([each.requests.remote() for each in engines])) == 0
