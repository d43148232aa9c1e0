"""A trainer that submits prompts and collects answers, and adapters of it: a good one, and bad ones."""

from __future__ import annotations

import random
import uuid

from rollout_cassettes import Trajectory
from rollout_cassettes.adapters import Adapter, EntryPoint, Place, Role
from rollout_cassettes.testing import Run


class Engine:
    def __init__(self):
        self.requests = 0

    def answer(self, prompt, weight):
        self.requests += 1
        return {"text": f"{prompt}{random.randint(0, 99)}", "score": weight * random.random()}


class Trainer:
    """Learns one number; each step is validated."""

    def __init__(self, prompts=("a", "b", "c"), steps=3):
        self.prompts, self.steps = prompts, steps
        self.engine = Engine()
        self.step, self.weight, self.waiting = 0, 1.0, {}

    def submit(self, batch):
        self.waiting |= {uid: self.engine.answer(each, self.weight) for uid, each in batch.items()}
        return len(batch)

    def collect(self):
        done = list(self.waiting.items())
        self.waiting = {}
        random.shuffle(done)
        return dict(done)

    def validate(self, prompts):
        return [self.engine.answer(prompt, self.weight)["score"] for prompt in prompts]

    def fit(self):
        log = []
        for step in range(1, self.steps + 1):
            self.step = step
            self.submit({uuid.uuid4().hex: f"{prompt}{self.step}" for prompt in self.prompts})
            answers = list(self.collect().values())
            self.weight += sum(answer["score"] for answer in answers) + random.random() / 7
            log.append([answers, self.validate(["v"])])
        return log, self.weight


class Fast(Trainer):
    """Overrides an entry point."""

    def submit(self, batch):
        return super().submit(batch)


def make_run(trainer=Trainer, **options):
    made = trainer(**options)
    return Run(train=made.fit, rollouts=lambda: made.engine.requests)


def make_other():
    return make_run(prompts=("a", "b", "d"))


def point(name, role=Role.WHOLE):
    return EntryPoint("little", __name__, f"Trainer.{name}", role=role, overrides=True)


class Good(Adapter):
    name = "little"
    step_kind = "trainer step"
    phases = frozenset({"train"})
    entry_points = (
        point("submit", Role.SUBMIT),
        point("collect", Role.SAMPLE),
        point("validate"),
    )

    def place(self, call):
        return Place(call.args[0].step, "val" if call.point.role is Role.WHOLE else "train")

    def request(self, call):
        whole = call.point.role is Role.WHOLE
        return {prompt: prompt for prompt in call.args[1]} if whole else dict(call.args[1])

    def withhold(self, call, recorded, submitted):
        return len(call.args[1])

    def capture(self, call, result, submitted):
        return result

    def restore(self, call, recorded, submitted, shift):
        if call.point.role is Role.WHOLE:
            return recorded.response
        old = [uid for batch in recorded.request for uid in batch]
        new = [uid for batch in submitted for uid in batch]
        renamed = dict(zip(old, new, strict=True))
        return {renamed[uid]: answer for uid, answer in recorded.response.items()}

    def rows(self, request):
        batches = request if isinstance(request, list) else [request]
        return [{"prompt": prompt} for batch in batches for prompt in batch.values()]

    def trajectories(self, recorded):
        if isinstance(recorded.response, list):  # of a validation, there are scores alone
            return []
        answers = enumerate(recorded.response.values())
        return [
            Trajectory(row=n, response=each["text"], score=each["score"]) for n, each in answers
        ]


class Handing(Good):
    """Nothing is submitted for its validation, which is handed over like all else."""

    entry_points = (*Good.entry_points[:2], point("validate", Role.SAMPLE))

    def place(self, call):
        return Place(call.args[0].step, "val" if _validates(call) else "train")

    def request(self, call):
        return {} if call.point.role is Role.SAMPLE else super().request(call)

    def restore(self, call, recorded, submitted, shift):
        if _validates(call):
            return recorded.response
        return super().restore(call, recorded, submitted, shift)


def _validates(call):
    return call.point.target.endswith("validate")


class Renamed(Good):
    """Is for two packages, of which one is here."""

    entry_points = (*Good.entry_points, EntryPoint("little", "older_name.engine", "f", "older"))


class Typo(Good):
    """A module that there isn't: a session would wait for it for ever."""

    entry_points = (*Good.entry_points, EntryPoint("little", "no_such_module", "f"))


class Rounding(Good):
    """Records less than there was."""

    def capture(self, call, result, submitted):
        if call.point.role is Role.WHOLE:
            return result
        return {u: a | {"score": round(a["score"], 3)} for u, a in result.items()}


class Meddling(Good):
    """Changes what the trainer gets while it is recorded."""

    def capture(self, call, result, submitted):
        if isinstance(result, list):
            result[0] += 1
        return result


class Dispatching(Good):
    """Asks the engine in a replay, past the session."""

    def withhold(self, call, recorded, submitted):
        return call.original(*call.args)


class Drawing(Good):
    """Leaves a generator somewhere else."""

    def capture(self, call, result, submitted):
        random.random()
        return result


class Comparing(Good):
    """Compares ids, which are new in each run."""

    def rows(self, request):
        batches = request if isinstance(request, list) else [request]
        return [dict(batch) for batch in batches]


class Indifferent(Good):
    """Compares nothing that matters."""

    def rows(self, request):
        return [{"prompts": 3}]


class Unfitting(Good):
    """Says that it can't be used in repeat mode."""

    def restore(self, call, recorded, submitted, shift):
        if shift is not None:
            raise NotImplementedError("recordings of little are not fitted")
        return super().restore(call, recorded, submitted, shift)


class Shifting(Good):
    """Can't be used in repeat mode, and doesn't know."""

    def restore(self, call, recorded, submitted, shift):
        return super().restore(call, recorded, submitted, shift) if not shift else 1 / 0


class Patching(Good):
    """Puts something in an entry point's place by itself."""

    def capture(self, call, result, submitted):
        Fast.submit = Trainer.submit
        return result


class Misreading(Good):
    """Knows trajectories by another name."""

    def trajectories(self, recorded):
        return [{"response": "a"}]


class Unreadable(Good):
    """Has no trajectories."""

    def trajectories(self, recorded):
        return []


class Unstorable(Good):
    """Records what a cassette can't hold."""

    def capture(self, call, result, submitted):
        return object()


class Uncomparing(Good):
    """Compares nothing, and says so."""

    def rows(self, request):
        return None
