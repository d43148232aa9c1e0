"""The command line: ``rollout-cassettes``. Each command has a module."""

from rollout_cassettes.cli.app import app
from rollout_cassettes.cli.demo import demo
from rollout_cassettes.cli.import_dumps import import_dumps
from rollout_cassettes.cli.run import SETTINGS, run

app.command()(demo)
app.command("import")(import_dumps)
app.command(context_settings=SETTINGS)(run)

__all__ = ["app"]
