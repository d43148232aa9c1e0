"""``python -m rollout_cassettes`` is the command line."""

from rollout_cassettes.cli import app

app()
