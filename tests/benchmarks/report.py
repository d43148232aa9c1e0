"""Measure reports: writing one of a long run, its size, and how fast a browser shows it.

Run it by hand: `python tests/benchmarks/report.py`. It needs tokenizers, selenium and chromium. The
cassette is made up, as the reference step is: rewards rise and responses grow from step to step.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import rollout_cassettes as rc
from rollout_cassettes.display.amounts import readable_bytes

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))
import reference_step

from tests.report.browser import Browser

SYLLABLES = [
    a + b for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er", "ing")
]
FILES = ("tokenizer.json",)
DIFFERENT = 4
"""How many steps are made; the others are these with other rewards, which takes less time."""


def make_tokenizer(directory: Path) -> Path:
    """Write a tokenizer with a word for each token id, the shorter the more frequent."""
    import tokenizers

    directory.mkdir(exist_ok=True)
    words = {f"Ġ{_word(token)}": token for token in range(reference_step.VOCABULARY)}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="Ġba"))
    made.decoder = tokenizers.decoders.ByteLevel()
    made.save(str(directory / FILES[0]))
    return directory


def _word(token: int) -> str:
    parts = [SYLLABLES[token % len(SYLLABLES)]]
    while token >= len(SYLLABLES):
        token //= len(SYLLABLES)
        parts.append(SYLLABLES[token % len(SYLLABLES)])
    return "".join(parts)


def make_cassette(path: Path, steps: int, prompts: int) -> Path:
    """Record steps as rows in columns, without padding."""
    rng = np.random.default_rng(0)
    bases = [reference_step.make(seed, prompts) for seed in range(min(DIFFERENT, steps))]

    @rc.adapters.function(step_of=lambda step: step)
    def rollout(step):
        base = bases[step % len(bases)]
        chance = 0.15 + 0.6 * (1 - np.exp(-2.5 * step / steps)) + rng.normal(0, 0.02)
        hard = np.repeat(rng.beta(1.2, 1.2, prompts), reference_step.RESPONSES_EACH)
        right = rng.random(len(base)) < np.clip(chance * 2 * (1 - hard), 0, 1)
        base = replace(
            base, log_probs=[row * (1.15 - 0.5 * step / steps) for row in base.log_probs]
        )
        return {
            "uid": [f"{step}-{uid}" for uid in base.uids],
            "raw_prompt": base.raw_prompts,
            "prompt_ids": [row.numpy() for row in base.prompts],
            "response_ids": [row.numpy() for row in base.responses],
            "log_probs": [row.numpy() for row in base.log_probs],
            "score": right.astype(float).tolist(),
            "reward_model": base.answers,
        }

    with rc.record(path=path):
        for step in range(1, steps + 1):
            rollout(step)
    return path


@dataclass(frozen=True)
class Written:
    """What writing a report took.

    Attributes:
        seconds: Time on the clock.
        cpu: Seconds of a processor: what a busy machine changes least.
        memory: The most memory that the process had, in bytes.
    """

    seconds: float
    cpu: float
    memory: int


PROGRAM = """
import re, resource, sys
from rollout_cassettes.cli import app
try:
    app(sys.argv[1:])
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)  # its ru_maxrss may be that of what started it
    memory = re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read()).group(1)
    print(used.ru_utime + used.ru_stime, memory)
"""


def write(cassette: Path, tokenizer: Path, output: Path) -> Written:
    """Write a report in a process of its own, on Linux."""
    command = [sys.executable, "-c", PROGRAM, "report", cassette, "-o", output, "--overwrite"]
    started = time.perf_counter()
    done = subprocess.run(
        [*map(str, command), "--tokenizer", str(tokenizer)],
        check=True,
        capture_output=True,
        text=True,
    )
    took = time.perf_counter() - started
    cpu, memory = done.stdout.splitlines()[-1].split()
    return Written(took, float(cpu), int(memory) * 1024)


def show(browser: Browser, output: Path, step: int) -> dict[str, float]:
    """Open a report; give the seconds until each thing is shown."""
    browser.open(output)
    browser.wait(lambda: browser.script("return document.readyState") == "complete")
    found = {
        "overview": browser.script("return performance.getEntriesByName('shown')[0].startTime"),
        "all read": browser.script(
            "return performance.getEntriesByType('navigation')[0].domComplete"
        ),
    }
    found = {name: milliseconds / 1000 for name, milliseconds in found.items()}
    for name, address in {"step": f"#/step/{step}", "trajectory": f"#/step/{step}/row/7"}.items():
        started = time.perf_counter()
        browser.go(address)
        found[name] = time.perf_counter() - started
    browser.go(f"#/step/{step}/rows")
    started = time.perf_counter()
    browser.search("nosuchword")
    browser.wait(lambda: "No trajectory matches" in browser.text())
    found["search"] = time.perf_counter() - started
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--prompts", type=int, default=reference_step.PROMPTS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="Where the cassette and the report stay.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = options.keep or Path(scratch)
        directory.mkdir(exist_ok=True)
        cassette = directory / "run"
        if not cassette.exists():
            make_cassette(cassette, options.steps, options.prompts)
        tokenizer = make_tokenizer(directory / "tokenizer")
        output = directory / "report.html"
        written = write(cassette, tokenizer, output)
        with Browser() as browser:
            rounds = [show(browser, output, options.steps // 2) for _ in range(options.rounds)]
        table = Table("figure", "value")
        table.add_row("writing", f"{written.seconds:.1f} s")
        table.add_row("writing, seconds of a processor", f"{written.cpu:.1f} s")
        table.add_row("memory while writing", readable_bytes(written.memory))
        table.add_row("size", readable_bytes(output.stat().st_size))
        table.add_row(
            "size of the cassette",
            readable_bytes(sum(f.stat().st_size for f in cassette.iterdir())),
        )
        for name in rounds[0]:
            table.add_row(name, f"{statistics.median(each[name] for each in rounds):.2f} s")
        Console().print(table)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
