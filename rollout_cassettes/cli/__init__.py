"""The command line: ``rollout-cassettes``. Each command has a module."""

from rollout_cassettes.cli.app import app
from rollout_cassettes.cli.demo import demo
from rollout_cassettes.cli.diff import diff
from rollout_cassettes.cli.export import export
from rollout_cassettes.cli.git_setup import git_setup
from rollout_cassettes.cli.import_dumps import import_dumps
from rollout_cassettes.cli.ls import ls
from rollout_cassettes.cli.pack import pack, unpack
from rollout_cassettes.cli.prune import prune
from rollout_cassettes.cli.report import report
from rollout_cassettes.cli.run import SETTINGS, run
from rollout_cassettes.cli.show import show
from rollout_cassettes.cli.shrink import shrink
from rollout_cassettes.cli.verify import verify

app.command()(ls)
app.command()(show)
app.command()(verify)
app.command()(diff)
app.command()(export)
app.command()(report)
app.command()(pack)
app.command()(unpack)
app.command()(prune)
app.command()(shrink)
app.command("git-setup")(git_setup)
app.command()(demo)
app.command("import")(import_dumps)
app.command(context_settings=SETTINGS)(run)

__all__ = ["app"]
