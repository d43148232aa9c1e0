"""The command line: ``rollout-cassettes``. Each command has a module."""

from rollout_cassettes.cli.app import app
from rollout_cassettes.cli.demo import demo
from rollout_cassettes.cli.import_dumps import import_dumps

app.command()(demo)
app.command("import")(import_dumps)

__all__ = ["app"]
