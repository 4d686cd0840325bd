"""Code around every command: help, lazy imports, errors, exit codes, streams."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import click
import pytest

from ipfsmem import config
from ipfsmem.cli import app, conflicts_cmd
from ipfsmem.cli.app import SHORT
from ipfsmem.cli.options import RENAMED_OPTIONS
from ipfsmem.errors import ConfigError, IpfsmemError
from ipfsmem.memories.memory_records import Alternative, Conflict, MemoryRecord
from ipfsmem.operations.conflicts import Conflicts
from tests.cli.test_outcomes import leaves
from tests.support.cli_lab import Cli, program


@pytest.mark.parametrize("name", SHORT)
def test_every_command_has_a_help_and_the_shared_options(bare: Cli, name: str) -> None:
    command = app.find_command(name)
    assert command is not None and command.help
    assert f"Usage: ipfsmem {name} " in bare.ok(name, "--help").out
    for path in leaves(command, (name,)):
        one = app.find_command(*path.split())
        assert one is not None and one.help, path
        options = {option for parameter in one.params for option in parameter.opts}
        assert {"--json", "--vault", "--namespace", "--home"} <= options, path


@pytest.mark.parametrize("earlier", ["-n", "--namespace"])
def test_renamed_vault_option_still_works_but_is_not_in_the_help(bare: Cli, earlier: str) -> None:
    bare.ok("init", "--mode", "local", "--vault", "work")
    bare.ok("write", "tone", earlier, "work", "--body", "x")
    assert bare.ok(earlier, "work", "read", "tone", "--body").out == "x\n"
    assert bare.ok("list", "--vault", "work", earlier, "work").out
    for words in (
        ("list", "--vault", "work", earlier, "other"),
        ("--vault", "work", earlier, "other", "list"),
    ):
        assert "name two vaults" in bare.fails(2, *words).err
    for page in (("--help",), ("list", "--help"), ("help", "all")):
        said = bare.ok(*page).out
        assert "--vault" in said and f"{earlier} " not in said and f"{earlier}," not in said


def test_every_command_module_is_offered_as_a_command() -> None:
    modules = {path.stem for path in Path(app.__file__).parent.glob("*_cmd.py")}
    names = ({*SHORT} | {*app.HIDDEN}) - app.GROUPS.keys() - {"mcp"}
    grouped = {where.partition(":")[0] for group in app.GROUPS.values() for where, _ in group.values()}
    assert modules == {f"{name}_cmd" for name in names} | grouped


@pytest.mark.parametrize("arguments", [["--help"], ["format", "cid", "."]])
def test_fast_commands_import_few_modules(tmp_path: Path, arguments: list[str]) -> None:
    code = (
        "import sys; from ipfsmem.cli import main; main(sys.argv[1:]);"
        "print('HEAVY', *[m for m in sys.modules if m.split('.')[0] in "
        "('rich', 'nacl', 'eth_account', 'eth_keys', 'aiohttp', 'cryptography', 'sqlite3', 'msgspec')"
        " or m in ('ipfsmem.memory', 'asyncio')])"
    )
    (tmp_path / "file").write_text("x")
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "HEAVY"


def test_unknown_command_suggests_a_similar_one(bare: Cli) -> None:
    assert "did you mean 'read'?" in bare.fails(2, "reed").err
    bare.fails(2, "xyzzy")


@pytest.mark.parametrize(("command", "old"), RENAMED_OPTIONS)
def test_renamed_option_is_refused_with_its_new_name(bare: Cli, command: str, old: str) -> None:
    now = RENAMED_OPTIONS[command, old]
    for words in ((old,), (f"{old}=tone.conflict-1.md",)):
        said = bare.fails(2, *command.split(), "tone", *words).err
        assert f"it is now '{now}'" in said and "Did you mean" not in said
    assert now in bare.ok(*command.split(), "--help").out


def test_usage_errors_are_one_line(bare: Cli) -> None:
    result = bare.fails(2, "read")
    assert result.err.splitlines() == ["ipfsmem: Missing argument 'KEY'.", "See: ipfsmem read --help"]
    assert bare.fails(2, "list", "--nonsense").err.startswith("ipfsmem: No such option")


@pytest.mark.parametrize("group", [[], ["member"], ["provider"]])
def test_command_group_without_a_subcommand_prints_its_help(bare: Cli, group: list[str]) -> None:
    """Exit code 2, because no command ran."""
    alone = bare(*group)
    assert (alone.code, alone.err) == (2, "")
    assert alone.out == bare.ok(*group, "--help").out and len(alone.out.splitlines()) > 10
    assert bare("--json", *group).error == {
        "kind": "UsageError", "message": "Missing command.",
        "hint": f"See: {' '.join(['ipfsmem', *group])} --help", "exit_code": 2,
    }  # fmt: skip


def test_package_runs_as_a_module(tmp_path: Path) -> None:
    """`python -m ipfsmem` is the same program."""
    for module in ("ipfsmem", "ipfsmem.cli"):
        done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, check=True)
        assert done.stdout.startswith(b"ipfsmem ")


def test_errors_with_json_option_go_to_stderr(cli: Cli) -> None:
    result = cli("read", "nothing", "--json")
    assert (result.code, result.out) == (4, "")
    assert result.error == {
        "kind": "NotFoundError",
        "message": "there is no memory nothing",
        "hint": "List the memories: ipfsmem list.",
        "exit_code": 4,
    }
    assert cli("read", "--json").error["kind"] == "UsageError"


def test_options_before_the_command_are_accepted(cli: Cli, tmp_path: Path) -> None:
    cli.ok("write", "a", "--body", "x")
    assert [item["key"] for item in cli.ok("--json", "list").json["memories"]] == ["a"]
    cli.fails(4, "--home", str(tmp_path / "elsewhere"), "list")
    cli.fails(4, "-n", "other", "list")


def test_version_option_prints_the_version(bare: Cli) -> None:
    assert bare.ok("--version").out.startswith("ipfsmem ")


def test_invalid_vault_name_is_refused_in_one_line(bare: Cli) -> None:
    bare.fails(3, "list", "-n", "../up")


def test_unexpected_error_is_one_line_without_debug_mode(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from ipfsmem.operations.list import list_

    def broken(*_: object, **__: object) -> None:
        raise KeyError("oops\nsecond line")

    monkeypatch.setattr(list_, "work", broken)
    result = cli.fails(70, "list")
    assert "unexpected KeyError" in result.err and "IPFSMEM_DEBUG=1" in result.err
    assert cli("list", "--json").error["kind"] == "Unexpected"
    monkeypatch.setenv("IPFSMEM_DEBUG", "1")
    with pytest.raises(KeyError):
        cli("list")


def test_eof_error_inside_a_command_is_not_an_interruption(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """An incomplete compiled module on a full disk raises EOFError."""
    from ipfsmem.operations.list import list_

    def cut_off(*_: object, **__: object) -> None:
        raise EOFError("marshal data too short")

    monkeypatch.setattr(list_, "work", cut_off)
    result = cli("list")
    assert result.code == 70 and "unexpected EOFError: marshal data too short" in result.err
    monkeypatch.setenv("IPFSMEM_DEBUG", "1")
    with pytest.raises(EOFError):
        cli("list")


def test_interrupted_command_exits_with_130(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from ipfsmem.operations.list import list_

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(list_, "work", stopped)
    result = cli("list")
    assert result.code == 130 and "interrupted" in result.err


def test_ctrl_c_interrupts_a_real_process(cli: Cli, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen(
        [sys.executable, "-m", "ipfsmem.cli", "write", "key", "--file", str(fifo), "--home", str(cli.home)],
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        with fifo.open("w"):  # the command is reading now
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        assert process.stderr is not None and b"Traceback" not in process.stderr.read()


@pytest.mark.slow
def test_closed_pipe_ends_a_command_without_an_error(cli: Cli) -> None:
    blob = {f"k{i}.md": "x" * 3000 for i in range(100)}
    import json

    cli.ok("import", "-", stdin=json.dumps({"version": "memory/0.1", "files": blob}).encode())
    command = f"{sys.executable} -m ipfsmem.cli export --home {cli.home} | head -c 10"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, timeout=60)
    assert done.stderr == b"" and done.returncode == 141 and len(done.stdout) == 10


def test_no_error_class_uses_a_reserved_exit_code() -> None:
    def tree(kind: type[IpfsmemError]) -> list[type[IpfsmemError]]:
        return [kind, *(one for below in kind.__subclasses__() for one in tree(below))]

    codes = {kind.exit_code for kind in tree(IpfsmemError)}
    assert not codes & {0, app.UNEXPECTED, app.INTERRUPTED, app.BROKEN_PIPE}


@pytest.mark.slow
def test_stored_text_cannot_control_a_terminal(cli: Cli) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe"
    cli.ok("write", "evil", "--name", evil, "--description", evil, "--body", f"{evil}\nsecond line")
    cli.ok("timeline", "add", "evil", f"what={evil}")
    for arguments in (["list"], ["read", "evil"], ["timeline", "show"]):
        shown = on_a_terminal([*arguments, "--home", str(cli.home)])
        for forbidden in ("\x1b]", "\x1b[2J", "\x07", "\u202e"):
            assert forbidden not in shown, arguments
    assert evil.encode() in cli.ok("read", "evil").out_bytes  # a program gets every byte


@pytest.mark.slow
def test_colours_appear_only_on_a_terminal_and_can_be_disabled(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "x")
    assert "\x1b[" not in cli.ok("list").out + cli.ok("status").out
    assert "\x1b[" in on_a_terminal(["list", "--home", str(cli.home)])
    for command in ("list", "status", "vault check"):
        assert "\x1b[" not in on_a_terminal([*command.split(), "--home", str(cli.home)], NO_COLOR="1")


def on_a_terminal(arguments: list[str], **environment: str) -> str:
    """Return the output as a terminal shows it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ipfsmem.cli", *arguments],
        stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm", **environment},
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    while True:
        try:
            data = os.read(ours, 4096)
        except OSError:
            break
        if not data:
            break
        seen += data
    os.close(ours)
    assert process.wait(60) == 0, seen
    return seen.decode()


def test_installed_program_runs() -> None:
    assert program("--version").stdout.startswith(b"ipfsmem ")


def test_commands_share_the_default_retention_of_versions() -> None:
    from ipfsmem.cli import vault_compact_cmd, vault_move_cmd
    from ipfsmem.sync.retention import KEEP_DAYS, KEEP_ROOTS
    from ipfsmem.upkeep import OLD, PARTS

    assert vault_compact_cmd.PARTS == PARTS and OLD == 90 * 86_400
    for command in (vault_compact_cmd.command, vault_move_cmd.command):
        defaults = {parameter.name: parameter.default for parameter in command.params}
        assert (defaults["keep_roots"], defaults["keep_days"]) == (KEEP_ROOTS, KEEP_DAYS)


@pytest.mark.parametrize("arguments", [("list",), ("list", "--json"), ("read", "snow")])
def test_text_outside_the_system_encoding_is_printed(cli: Cli, arguments: tuple[str, ...]) -> None:
    """Windows pipes use cp1252."""
    cli.ok("write", "snow", "--name", "☃ ✓", "--body", "日本")
    done = subprocess.run(
        [sys.executable, "-m", "ipfsmem.cli", *arguments],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", "IPFSMEM_HOME": str(cli.home)},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "☃ ✓" in done.stdout.decode("utf-8")


def test_diff_of_many_lines_is_shown_in_time() -> None:
    from ipfsmem.cli.vault_diff_cmd import differences

    old = [str(n * 7 % 9973) for n in range(60_000)]
    new = [str(n * 11 % 9973) for n in range(60_000)]
    start = time.process_time()
    found = list(differences(["same", *old, "end"], ["same", *new, "end"]))
    assert time.process_time() - start < 5
    assert sum(line[:1] == "-" for line in found) == sum(line[:1] == "+" for line in found) > 50_000
    assert "-same" not in found and "+end" not in found
    small = list(differences(["same"] * 5000 + ["a"], ["same"] * 5000 + ["b"]))
    assert small[-2:] == ["-a", "+b"]
    assert list(differences(["a", "b", "c"], ["a", "x", "c"]))[-4:] == [" a", "-b", "+x", " c"]


def test_conflict_of_many_lines_is_shown_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """`conflicts KEY` once compared each line with every other."""
    old, new = ("\n".join(f"{who} {n % 7}" for n in range(6_000)) for who in ("here", "there"))
    shown_here, there = (MemoryRecord.of("tone", text.encode(), (), device=text[:4]) for text in (old, new))
    item = Conflict("tone", shown_here, (Alternative("f", (), there),))
    found = Conflicts(conflicts=(item,), late=(), labels={"here": "a", "ther": "b"})
    shown: list[str] = []
    monkeypatch.setattr(click, "echo", lambda text="", **_: shown.append(text))
    began = time.process_time()
    conflicts_cmd._print(found, item, whole=True, elsewhere=False)
    assert time.process_time() - began < 5
    lines = [click.unstyle(line).strip() for line in shown]
    assert lines.count("-here 3") == lines.count("+there 3") == 857


UNSEEN = "\x7f\x80\x9b\u061c\u200b\u200e\u202e\u2028\u2066\u2069\ufeff\xad\U000e0041\U000e007f"


def test_json_output_escapes_terminal_controls_without_loss(cli: Cli) -> None:
    text = f"a{UNSEEN}\x1b[31mb\u00e9\u65e5\U0001f600"
    cli.ok("timeline", "add", "said", "--json", f"text={text}")
    result = cli.ok("timeline", "show", "--json")
    assert text in json.loads(result.out)["events"][0].values()
    assert not set(UNSEEN + "\x1b") & set(result.out) and "\u00e9\u65e5\U0001f600" in result.out
    wrong = cli("read", f"no{UNSEEN}", "--json")
    assert not set(UNSEEN) & set(wrong.out + wrong.err) and wrong.code != 0
    plain = cli.ok("timeline", "show")
    assert not set(UNSEEN[:11]) & set(plain.out) - {"\u200b"}


@pytest.mark.parametrize(
    "source",
    [
        "https://[x", "https://[::1", "http://", "https://:80/", "https://h:99999/", "https://h:x/", "http://h:0/",
        "https://\u202eevil/", "https://h/\x00", "https://h/\ud800", "ipfs://[x", "ipns://", "/ipfs/", "", " ", "https://a b/",
        "https://user:secret-word@[x/", "https://xn--/", "https://" + "a" * 300 + "/", "file:///etc/passwd",
    ],
)  # fmt: skip
def test_invalid_source_of_open_is_refused_without_a_traceback(bare: Cli, source: str) -> None:
    result = bare("open", source, "--provider", "gateway:https://127.0.0.1:9")
    assert result.code not in (0, 70) and "unexpected" not in result.err and "Traceback" not in result.err
    assert "secret-word" not in result.err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names there are Unicode text")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("init", "--unprotected-keys", "--no-wallet", "--provider", "./{}"), 3),
        (("init", "--mode", "local", "--label", "{}"), 2),
        (("init", "--mode", "local", "--memory-dir", "{}"), 3),
        (("provider", "test", "./{}"), 3),
        (("format", "inspect", "{}/x"), 4),
    ],
)
def test_name_that_is_not_unicode_is_refused_without_a_traceback(
    tmp_path: Path, arguments: tuple[str, ...], code: int
) -> None:
    odd = "d\udcff"
    (tmp_path / odd).mkdir()
    home = tmp_path / "home"
    for as_json in ([], ["--json"]):
        given = [part.format("none-" + odd if code == 4 else odd) for part in arguments]
        done = program(*given, *as_json, cwd=tmp_path, env={**os.environ, "IPFSMEM_HOME": str(home)})
        assert done.returncode == code, done
        assert b"Traceback" not in done.stderr and b"unexpected" not in done.stderr
        assert (b"a label is not text" if "--label" in arguments else b"udcff") in done.stderr
    assert not (home / "default" / "ipfsmem.json").exists()


def test_user_without_a_home_directory_is_told_which_variable_to_set(
    bare: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container's user may have no entry in the user database."""

    def unknown(user: int) -> None:
        raise KeyError(user)

    monkeypatch.setattr("pwd.getpwuid", unknown)
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "IPFSMEM_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    bare.ok("init", "--mode", "local")
    assert config.settings({}) == config.Settings()
    for words in (("connect", "--list"), ("service", "status")):
        assert "names no home folder" in bare.fails(3, *words).err
    hint = "Set HOME to an absolute path, or pass --home DIR (in Python: home=)."
    with pytest.raises(ConfigError, match="names no home folder") as refused:
        config.home(None, config.Settings())
    assert refused.value.hint == hint
    assert "~/x cannot be found" in bare.fails(3, "status", "--home", "~/x").err
    monkeypatch.setenv("HOME", "here")
    for words in (("connect", "--list"), ("service", "status")):
        assert "HOME is 'here', which depends on where one stands" in bare.fails(3, *words).err


#: Runs `ipfsmem` and kills it before a file is complete.
KILLED_BEFORE_RENAME = """
import os, signal, sys
from ipfsmem.cli import main
fsync = os.fsync
def ended(descriptor):
    os.fsync = fsync
    os.kill(os.getpid(), int(os.environ["ENDED_BY"]))
    fsync(descriptor)
os.fsync = ended
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("to", ["--zip", "--dir", "--out", "--plain-car"])
def test_interrupted_export_leaves_no_partial_plain_text(
    sealed: Cli, tmp_path: Path, number: signal.Signals, to: str
) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    place = tmp_path / "place"
    place.mkdir()
    there = {**os.environ, "IPFSMEM_HOME": str(sealed.home), "ENDED_BY": str(int(number))}
    words = [sys.executable, "-c", KILLED_BEFORE_RENAME, "export", to, str(place / "all")]
    # The signal may be ignored where tests run: under nohup, or in a shell's background.
    heard = partial(signal.signal, number, signal.SIG_DFL)
    done = subprocess.run(words, env=there, capture_output=True, timeout=60, preexec_fn=heard)
    assert done.returncode == 128 + number and b"interrupted; nothing" in done.stderr
    assert list(place.iterdir()) == []


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no terminals that are closed")
def test_command_under_nohup_survives_sighup(sealed: Cli, tmp_path: Path) -> None:
    there = {**os.environ, "IPFSMEM_HOME": str(sealed.home), "ENDED_BY": str(int(signal.SIGHUP))}
    words = [sys.executable, "-c", KILLED_BEFORE_RENAME, "export", "--zip", str(tmp_path / "all.zip")]
    done = subprocess.run(["nohup", *words], env=there, capture_output=True, timeout=60)
    assert done.returncode == 0 and (tmp_path / "all.zip").exists()
