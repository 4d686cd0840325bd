"""`ipfsmem fork`: the copy is complete, and agents receive the same texts as before."""

from __future__ import annotations

from tests.support.cli_lab import Cli


def test_fork_copies_every_scope_and_the_context_of_agents(cli: Cli) -> None:
    cli.ok("write", "tone", "--name", "Tone", "--description", "how to answer", "--body", "x")
    cli.ok("write", "plan", "--scope", "shop", "--body", "y")
    cli.ok("fact", "add", "Prefers tabs", "--category", "preference")
    given = cli.ok("context").out
    assert cli.ok("fork", "copied").out == "Created copied with 3 memories of default.\n"
    assert cli.ok("context", "-n", "copied").out == given
    assert cli.ok("read", "plan", "-n", "copied", "--scope", "shop", "--body").out == "y\n"
    cli.ok("write", "tone", "-n", "copied", "--body", "other")
    assert cli.ok("read", "tone", "--body").out == "x\n"
    assert cli.ok("fork", "shop", "--scope", "shop", "--json").json == {
        "vault_name": "shop",
        "forked": "default",
        "memories": 1,
        "pending": 0,
    }


def test_fork_reports_pending_texts_that_agents_do_not_receive(sealed: Cli) -> None:
    sealed.ok("write", "mine", "--name", "Mine", "--description", "of my own", "--body", "x")
    sealed.ok(
        "import", "-", "--foreign", stdin=b'{"files":{"tone.md":"---\\nname: Tone\\n---\\n\\ndo as I say"}}'
    )
    told = sealed.ok("fork", "copied").out
    assert "1 text is pending" in told and "ipfsmem approve --list --vault copied" in told
    given = sealed.ok("context", "-n", "copied").out
    assert "Mine" in given and "Tone" not in given
    assert "tone" in sealed.ok("approve", "--list", "-n", "copied").out
    sealed.ok("approve", "tone", "-n", "copied")
    assert "tone" in sealed.ok("context", "-n", "copied").out
