"""verl's trainers, recorded and replayed as their configuration or the environment says."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import pickle
import subprocess
import sys

import pytest

import rollout_cassettes as rc
from rollout_cassettes import patching
from rollout_cassettes.configuration import RUN_VARIABLE, Configuration
from rollout_cassettes.patching import wrapper
from tests.verl.comparison import assert_equal_trainings

pytestmark = pytest.mark.verl

#: What the plugin wraps, and nothing else.
TARGETS = {
    "verl.trainer.ppo.v1.trainer_base:PPOTrainer.init",
    "verl.trainer.ppo.v1.trainer_base:PPOTrainer.fit",
    "verl.trainer.ppo.ray_trainer:RayPPOTrainer.init_workers",
    "verl.trainer.ppo.ray_trainer:RayPPOTrainer.fit",
    "verl.trainer.constants_ppo:get_ppo_ray_runtime_env",
}


@pytest.fixture(autouse=True)
def plugin(monkeypatch):
    """The plugin, which verl has loaded already where the package is installed."""
    monkeypatch.delenv(RUN_VARIABLE, raising=False)
    import rollout_cassettes.verl_plugin as module

    return module


@pytest.fixture
def path(tmp_path):
    """Where the cassette of a test is."""
    return tmp_path / "cassette"


def keys(path, mode, *more):
    """Give Hydra overrides, as a user types them."""
    return (
        f"+cassettes.mode={mode}",
        f"+cassettes.path={path}",
        *(f"+cassettes.{m}" for m in more),
    )


def in_environment(monkeypatch, **given):
    """Let the environment say what `rollout-cassettes run` would have it say."""
    monkeypatch.setenv(RUN_VARIABLE, Configuration.parse(given, "test").to_json())


# ---- V1, from end to end


def test_keys_record_and_replay_to_the_bit(train, path):
    """With no with-block anywhere; what is replayed is what was trained."""
    live = train(overrides=keys(path, "record", "steps=[1,2,3]"))
    assert rc.open_cassette(path).steps == [1, 2, 3]
    again = train(overrides=keys(path, "replay", "steps=1-3", "on_unplayed=error"))
    assert (live.requests.training, again.requests.training) == (24, 0)
    assert_equal_trainings(live, again)


def test_options_mean_what_they_mean_in_code(train, path):
    """Steps that are left out, metadata, plain files; repeated, with what is missing recorded."""
    train(
        steps=2,
        overrides=keys(path, "record", "steps=2", "compression=null", "metadata={git: abc}"),
    )
    assert rc.open_cassette(path).steps == [2]
    assert rc.open_cassette(path)[2].manifest.metadata == {"git": "abc"}
    assert not list(path.glob("*.zst"))
    again = train(steps=3, overrides=keys(path, "replay", "replay_mode=repeat"))
    assert again.requests.training == 0
    kept = keys(path, "replay", "on_miss=record", "on_mismatch=warn")
    assert train(steps=2, overrides=kept).requests.training == 8
    assert rc.open_cassette(path).steps == [1, 2]


def test_use_records_and_then_replays(train, path):
    """The same command each time."""
    assert train(steps=1, overrides=keys(path, "use")).requests.training == 8
    assert train(steps=1, overrides=keys(path, "use")).requests.training == 0


def test_a_session_lasts_as_long_as_fit(train, path):
    """Also where fit fails: the next training is live, and its steps are nobody's."""
    train(steps=1, overrides=keys(path, "record"))
    other = "data.seed=8"
    with pytest.raises(rc.RequestMismatchError):
        train(steps=1, overrides=(*keys(path, "replay"), other))
    assert train(steps=2).requests.training == 16
    assert rc.open_cassette(path).steps == [1]


def test_what_is_not_asked_for_is_an_error_of_fit(train, path):
    """Where the options say so: the end of fit is the end of the block."""
    train(steps=2, overrides=keys(path, "record"))
    with pytest.raises(rc.UnplayedError):
        train(steps=1, overrides=keys(path, "replay", "on_unplayed=error"))


@pytest.mark.parametrize("node", ["null", "{mode: record, steps: 1}"])
def test_a_whole_node_may_be_given(train, monkeypatch, tmp_path, node):
    """As from a YAML file; null is nothing."""
    monkeypatch.setenv("ROLLOUT_CASSETTES_PATH", str(tmp_path / "default"))
    train(steps=1, overrides=(f"+cassettes={node}",))
    assert (tmp_path / "default").exists() is (node != "null")


def test_a_relative_path_counts_from_where_the_training_was_started(train, monkeypatch, tmp_path):
    """The working directory, which is the user's: no Ray actor is between."""
    monkeypatch.chdir(tmp_path)
    train(steps=1, overrides=keys("here/c", "record"))
    assert rc.open_cassette(tmp_path / "here" / "c").steps == [1]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("on_mis=error", "Did you mean on_miss"),
        ("on_miss=recrod", "did you mean 'record'"),
        ("on_existing=skip", "goes with mode=record"),
        ("steps=3-1", "run backwards"),
    ],
)
def test_what_is_unknown_is_refused_before_training(train, path, more, told):
    """No step is taken."""
    with pytest.raises(rc.CassetteError, match=told) as caught:
        train(overrides=keys(path, "replay", more))
    assert "cassettes in verl's configuration" in str(caught.value)


# ---- the environment


def test_the_environment_records(train, path, monkeypatch):
    """As `rollout-cassettes run` sets it."""
    in_environment(monkeypatch, mode="record", path=str(path), steps="1")
    train(steps=2)
    assert rc.open_cassette(path).steps == [1]


def test_the_command_line_goes_before_hydra(train, path, monkeypatch, caplog):
    """As a whole: options of the two are not mixed, and the other is named."""
    train(steps=1, overrides=keys(path, "record"))
    in_environment(monkeypatch, mode="replay", path=str(path))
    other = path.with_name("other")
    run = train(steps=1, overrides=keys(other, "record", "steps=7"))
    assert run.requests.training == 0
    assert not other.exists()
    assert f"${RUN_VARIABLE} goes before the keys cassettes.*" in caplog.text


def test_an_environment_that_can_not_be_read_is_refused(train, monkeypatch):
    """It is not passed over."""
    monkeypatch.setenv(RUN_VARIABLE, "replay")
    with pytest.raises(rc.CassetteError, match=RUN_VARIABLE):
        train(steps=1)


# ---- what is said


def test_a_line_says_what_begins_and_one_what_was_done(train, path, caplog):
    """At INFO, although verl lets nothing below WARNING through; and only while a session is open."""
    logger = logging.getLogger("rollout_cassettes")
    train(steps=1, overrides=keys(path, "record", "steps=1-3"))
    told = [record for record in caplog.records if record.name == "rollout_cassettes"]
    assert told[0].getMessage() == (
        f"recording steps 1-3 to {path}, as cassettes in verl's configuration says"
    )
    assert f"{path}: 1 step recorded" in told[-1].getMessage()
    assert logger.level == logging.NOTSET


def test_a_level_that_was_chosen_is_kept(train, path, caplog):
    """By whoever wants to hear less."""
    with caplog.at_level(logging.ERROR, "rollout_cassettes"):
        train(steps=1, overrides=keys(path, "record"))
    assert not [record for record in caplog.records if record.name == "rollout_cassettes"]


# ---- V0, and trainers that are made from it


@rc.adapters.function(name="plugin_rollout", request_of=lambda prompt: prompt)
def rollout(prompt):
    return [prompt, "an answer"]


@pytest.fixture
def config(path):
    """What a trainer has as its configuration."""
    from omegaconf import OmegaConf

    trainer = {"val_before_train": False, "test_freq": -1}
    config = OmegaConf.create(
        {"cassettes": {"mode": "record", "path": str(path)}, "trainer": trainer}
    )
    OmegaConf.set_struct(config, True)
    return config


def test_without_configuration_nothing_but_fit_is_wrapped(config):
    """No session, and none of the adapters' entry points, while the training lasts."""
    from verl.trainer.ppo.ray_trainer import RayPPOTrainer

    class Trainer(RayPPOTrainer):
        def __init__(self, config):
            self.config = config

        def fit(self):
            return set(patching._patches), len(wrapper._handlers)

    patched, handlers = Trainer(config).fit()
    assert patched - TARGETS
    config.cassettes = None
    patched_in_vain, idle_handlers = Trainer(config).fit()
    assert patched_in_vain <= TARGETS
    assert idle_handlers == handlers - 1


def test_trainers_made_from_ray_ppo_trainer_have_sessions(config, path):
    """An override of fit is wrapped when its class is defined; `super().fit()` opens no second one."""
    from verl.experimental.separation.ray_trainer import SeparateRayPPOTrainer
    from verl.trainer.ppo.ray_trainer import RayPPOTrainer

    assert {"fit"} <= vars(SeparateRayPPOTrainer).keys()
    assert hasattr(SeparateRayPPOTrainer.fit, "__wrapped__")
    assert hasattr(RayPPOTrainer.fit, "__wrapped__")

    class Base(RayPPOTrainer):
        def __init__(self, config):
            self.config = config

        def fit(self):
            rollout("a")

    class Derived(Base):
        def fit(self):
            super().fit()
            rollout("b")

    Derived(config).fit()
    assert rc.open_cassette(path).steps == [1, 2]


def test_a_fit_may_be_asynchronous(config, path):
    """One-step-off's is, and the rollouter's."""
    from verl.experimental.one_step_off_policy.ray_trainer import OneStepOffRayTrainer

    assert asyncio.iscoroutinefunction(OneStepOffRayTrainer.fit)
    assert hasattr(OneStepOffRayTrainer.fit, "__wrapped__")

    class Trainer(OneStepOffRayTrainer):
        def __init__(self, config):
            self.config = config

        async def fit(self):
            await asyncio.create_task(asyncio.to_thread(rollout, "a"))

    asyncio.run(Trainer(config).fit())
    assert rc.open_cassette(path).steps == [1]


def test_an_error_that_fit_swallows_is_raised_at_its_end(config, path):
    """verl's rollouter gathers its tasks with `return_exceptions=True`, and ends quietly."""
    from verl.trainer.ppo.ray_trainer import RayPPOTrainer

    class Rollouter(RayPPOTrainer):
        total_training_steps = 0

        def __init__(self, config, prompt):
            self.config = config
            self.prompt = prompt

        async def fit(self):
            await asyncio.gather(asyncio.to_thread(rollout, self.prompt), return_exceptions=True)

    asyncio.run(Rollouter(config, "a").fit())
    config.cassettes.mode = "replay"
    asyncio.run(Rollouter(config, "a").fit())
    with pytest.raises(rc.RequestMismatchError):
        asyncio.run(Rollouter(config, "b").fit())


def test_the_fully_async_rollouter_has_a_session_and_its_trainer_has_none(config, path, caplog):
    """The classes as Ray holds them, which has copied their methods; the trainer only consumes."""
    from verl.experimental.fully_async_policy.fully_async_rollouter import FullyAsyncRollouter
    from verl.experimental.fully_async_policy.fully_async_trainer import FullyAsyncTrainer

    for actor_class, has_session in ((FullyAsyncTrainer, False), (FullyAsyncRollouter, True)):
        cls = actor_class.__ray_metadata__.modified_class
        actor = object.__new__(cls)
        actor.config, actor.message_queue_client = config, None
        caplog.clear()
        with pytest.raises(ValueError, match="MessageQueue client not set"):
            asyncio.run(cls.fit(actor))
        assert (f"recording all steps to {path}" in caplog.text) is has_session


# ---- without an engine


@pytest.fixture
def engineless(config, path):
    """Make a trainer of so many steps, whose replay has no engine."""
    from verl.checkpoint_engine.base import CheckpointEngineManager
    from verl.trainer.ppo.ray_trainer import RayPPOTrainer

    class Trainer(RayPPOTrainer):
        def __init__(self, steps):
            self.config, self.total_training_steps = config, steps

        def init_workers(self):
            # A manager without anything: to send weights would be an AttributeError.
            self.sent = object.__new__(CheckpointEngineManager).update_weights(0)

        def fit(self):
            return rollout("a")

    with rc.record(path=path):
        rollout("a")
    config.cassettes = {"mode": "replay", "path": str(path), "engines": "off"}
    return Trainer


def test_an_engine_that_is_off_is_off_before_fit(engineless, caplog):
    """It would be started when the workers are; one session lasts from there to the end of fit."""
    before = wrapper._handlers
    trainer = engineless(0)
    trainer.init_workers()
    assert trainer.sent == {}
    assert trainer.fit() == ["a", "an answer"]
    assert caplog.text.count("replaying all steps") == 1
    assert "1 step replayed, 0 generated live" in caplog.text
    assert set(wrapper._handlers) == set(before)


def test_a_run_without_an_engine_that_is_not_recorded_is_refused_at_fit(engineless):
    """And leaves no session behind."""
    before = wrapper._handlers
    trainer = engineless(3)
    trainer.init_workers()
    with pytest.raises(rc.StepNotRecordedError, match="engines='off'"):
        trainer.fit()
    assert set(wrapper._handlers) == set(before)


def test_a_session_goes_with_a_trainer_that_never_comes_to_its_fit(engineless):
    """As after an error in between, which someone has caught."""
    before = wrapper._handlers
    trainer = engineless(0)
    trainer.init_workers()
    assert set(wrapper._handlers) > set(before)
    del trainer
    gc.collect()
    assert set(wrapper._handlers) == set(before)


# ---- where the training is started


def launch(config):
    """Do what verl's `run_ppo` does before it starts Ray."""
    from verl.trainer.constants_ppo import get_ppo_ray_runtime_env

    return get_ppo_ray_runtime_env(config)


@pytest.fixture
def whole_config(assets):
    """verl's configuration, with cassettes of a relative path."""
    from rollout_cassettes.demo.config import compose_config

    return lambda *overrides: compose_config(assets, 1, overrides)


def test_keys_are_checked_where_the_training_is_started(whole_config):
    """Minutes before the trainer would have loaded its model."""
    with pytest.raises(rc.CassetteError, match="Did you mean on_miss"):
        launch(whole_config(*keys("c", "replay", "on_mis=error")))


def test_a_relative_path_is_made_absolute_where_the_training_is_started(
    whole_config, monkeypatch, tmp_path
):
    """In the configuration, which goes to the trainer's process."""
    monkeypatch.chdir(tmp_path)
    config = whole_config(*keys("c", "replay"))
    environment = launch(config)["env_vars"]
    assert config.cassettes.path == str(tmp_path / "c")
    assert RUN_VARIABLE not in environment
    nameless = whole_config("+cassettes.mode=record")
    launch(nameless)
    assert nameless.cassettes.path == str(tmp_path / "cassettes" / "default")


def test_the_environment_is_sent_along(whole_config, monkeypatch, tmp_path):
    """To a cluster that runs already, whose processes don't inherit it."""
    monkeypatch.chdir(tmp_path)
    assert RUN_VARIABLE not in launch(whole_config())["env_vars"]
    in_environment(monkeypatch, mode="replay", path="c")
    monkeypatch.setenv(RUN_VARIABLE, launch(whole_config())["env_vars"][RUN_VARIABLE])
    assert Configuration.from_environment().path == tmp_path / "c"


def test_hydra_may_have_changed_the_directory(tmp_path):
    """With `hydra.job.chdir=True`, paths count from where the command was started."""
    script = tmp_path / "main.py"
    script.write_text(
        "import hydra, os\n"
        "from verl.trainer.constants_ppo import get_ppo_ray_runtime_env\n"
        "import rollout_cassettes.verl_plugin\n"
        "@hydra.main(config_path=None, version_base=None)\n"
        "def main(config):\n"
        "    get_ppo_ray_runtime_env(config)\n"
        "    print(os.getcwd(), config.cassettes.path)\n"
        "main()\n"
    )
    options = ["hydra.job.chdir=True", "+cassettes.mode=record", "+cassettes.path=c"]
    command = [sys.executable, script, *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    here, path = done.stdout.splitlines()[-1].split()
    assert here.startswith(str(tmp_path / "outputs"))
    assert path == str(tmp_path / "c")


# ---- loading


def test_verl_loads_it_wherever_verl_is_imported():
    """By the entry point that the package declares; torch is verl's doing, not the plugin's."""
    script = (
        "import sys\n"
        "import rollout_cassettes.verl_plugin as plugin\n"
        "assert 'torch' not in sys.modules and 'verl' not in sys.modules\n"
        "del sys.modules['rollout_cassettes.verl_plugin']\n"
        "import verl\n"
        "assert 'rollout_cassettes.verl_plugin' in sys.modules\n"
        "assert not [name for name in sys.modules if name.startswith('verl.trainer')]\n"
    )
    # Where a cluster of another test runs, this says that every process imports the demo.
    environment = {name: os.environ[name] for name in os.environ if not name.startswith("VERL_")}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


ORDERS = {
    "verl loads it": "",
    "after the trainers": """
import os
os.environ["VERL_USE_EXTERNAL_PLUGINS"] = "none"
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.experimental.fully_async_policy.fully_async_rollouter import FullyAsyncRollouter
assert not hasattr(PPOTrainerSync.fit, "__wrapped__")
import rollout_cassettes.verl_plugin
""",
}


@pytest.mark.parametrize("first", ORDERS.values(), ids=ORDERS)
def test_every_fit_is_wrapped_whatever_is_imported_first(first):
    """Those of Ray's actor classes too, which hold copies of their methods."""
    script = """
from verl.experimental.fully_async_policy.fully_async_rollouter import FullyAsyncRollouter
from verl.experimental.one_step_off_policy.ray_trainer import OneStepOffRayTrainer
from verl.experimental.separation.ray_trainer import SeparateRayPPOTrainer
from verl.trainer.ppo.ray_trainer import RayPPOTrainer
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

rollouter = FullyAsyncRollouter.__ray_metadata__.modified_class
for cls in (PPOTrainerSync, RayPPOTrainer, SeparateRayPPOTrainer, OneStepOffRayTrainer, rollouter):
    function, files = cls.fit, []
    while function is not None:
        files.append(function.__code__.co_filename)
        function = getattr(function, "__wrapped__", None)
    assert any(file.endswith("patching/wrapper.py") for file in files), (cls, files)
"""
    subprocess.run([sys.executable, "-c", first + script], check=True)


@pytest.mark.parametrize("variable", ["", "{}"])
def test_a_verl_without_the_function_is_left_alone_unless_asked_to_record(
    plugin, variable, monkeypatch, caplog
):
    """A warning, since Hydra keys would do nothing; an error where the environment has options."""
    monkeypatch.setenv(RUN_VARIABLE, variable)
    missing = plugin._Plugin()
    if variable:
        with pytest.raises(rc.EntryPointNotFoundError):
            missing.install(f"{__name__}:NoTrainer.fit", plugin._fit)
    else:
        missing.install(f"{__name__}:NoTrainer.fit", plugin._fit)
        assert "no training of this verl can be recorded by configuration" in caplog.text


def test_a_patch_is_sent_without_what_is_patched_here():
    """Ray sends classes with all that they inherit; the hook for later subclasses is among it."""
    patch = patching._patches["verl.trainer.ppo.ray_trainer:RayPPOTrainer.fit"]
    sent = pickle.loads(pickle.dumps(patch))
    assert patch.is_on()
    assert not sent.is_on()
