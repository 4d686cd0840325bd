"""Run the hooks that an agent's program calls at its events: print memories and start the background sync.

A hook ends within its time limit, prints only output that the program understands, and never makes the program fail.
Failures are recorded (`device/agent_notes.py`) and shown by `status`. A hook uses no network, prompts for nothing,
and connects no folder. Most hooks only start that sync: modules that the others need are imported on use.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from ipfsmem.agents.hook_programs import (
    EVENTS,
    MAX_INPUT,
    WITHOUT_START,
    HookInput,
    answer,
    is_whole,
    parse_hook_input,
    shows_lines,
    takes_context,
)
from ipfsmem.device.atomic_files import storage_errors
from ipfsmem.errors import IpfsmemError, PassphraseError
from ipfsmem.locations import vault_folder

if TYPE_CHECKING:
    from ipfsmem.agents.session_text import SessionText

#: Time limit of a hook in seconds, by event. Programs wait 1.5 seconds at the end of a session, and longer elsewhere.
BOUNDS: Final = {"session-start": 3.0, "prompt": 2.0}
_BOUND: Final = 1.2
#: Bytes of transcript growth after which a program may have compacted it.
_COMPACTED_FROM: Final = 1024 * 1024
#: Milliseconds without a successful sync after which the start of a session warns the user.
_WARN_AFTER_MS: Final = 60 * 60 * 1000


class Hook:
    """One run of a hook. `now`: milliseconds since 1970 UTC; `start_sync` starts the background sync, in a folder;
    `passphrase`: that of the vault, None without one or if it is unlocked."""

    def __init__(
        self,
        event: str,
        program: str,
        vault_name: str,
        home: Path,
        *,
        now: Callable[[], int],
        start_sync: Callable[[str, Path, str], None],
        passphrase: str | None = None,
    ) -> None:
        self._event = event
        self._program = program
        self._vault_name = vault_name
        self._home = home
        self._now = now
        self._start_sync = start_sync
        self._passphrase = passphrase
        #: Why the hook input is unreadable, empty if it was read.
        self.unreadable = ""
        #: Records to write once the output is printed.
        self._once_printed: list[Callable[[], None]] = []
        self._place = vault_folder(home, vault_name)
        #: The agent's working folder; empty until the input was read.
        self.folder = ""

    def run(self, data: bytes, environment: Mapping[str, str]) -> bytes:
        """Handle the event, and return the output. Raises IpfsmemError on failure, which is recorded by then."""
        with storage_errors(self._place, "look into"):
            there = (self._place / "ipfsmem.json").exists()
        if not there:
            return b""  # no vault of that name on this device
        hook_input = parse_hook_input(data, environment)
        self.unreadable = hook_input.unreadable
        if self._event == "pre-compact" and hook_input.may_compact and not self._was_compacted(hook_input):
            return b""
        folder = self.folder = hook_input.folder or _working_directory()
        printed = b""
        try:
            if self._event == "session-start":
                printed = self._begin(hook_input, folder)
            elif self._event == "prompt":
                with contextlib.suppress(PassphraseError):  # reported at the start of the session
                    texts = (
                        self._after_a_pull(hook_input, folder),
                        self._memories_for_prompt(hook_input, folder),
                    )
                    printed = answer(self._program, self._event, context="\n".join(filter(None, texts)))
            elif self._event == "pre-compact" and hook_input.session:
                from ipfsmem.device.shown_texts import forget_shown

                forget_shown(self._place, hook_input.session)
        finally:
            if self._event != "prompt":
                self._start(folder)
        return printed

    def _was_compacted(self, hook_input: HookInput) -> bool:
        """Tell whether a conversation may have been compacted since the last time: only after enough growth."""
        try:
            grown = (
                Path(hook_input.transcript).stat().st_size // _COMPACTED_FROM if hook_input.transcript else 0
            )
        except OSError:
            grown = 0
        if not grown or not hook_input.session:
            return False
        from ipfsmem.device.shown_texts import note_shown, shown_to

        at = f"{grown:012x}"
        times = shown_to(self._place, f"compacted {hook_input.session}")
        note_shown(self._place, f"compacted {hook_input.session}", (at,))
        return at not in times

    def note_printed(self) -> None:
        """Record the memories shown to the session. Called when the program has read the output, so that lost output
        is repeated."""
        for note in self._once_printed:
            note()

    def _start(self, folder: str) -> None:
        """Start the background sync. If that fails, local memories are still printed."""
        try:
            self._start_sync(self._vault_name, self._home, folder)
        except Exception as error:
            from ipfsmem.device.agent_notes import note_hook

            note_hook(self._place, failed=self._now(), failure=type(error).__name__)

    def _begin(self, hook_input: HookInput, folder: str) -> bytes:
        from ipfsmem.device.agent_notes import note_hook
        from ipfsmem.device.shown_texts import forget_shown

        at, context, lines = self._now(), "", list[str]()
        # No memories were shown yet: if this hook is killed now, the next prompt shows them.
        note_hook(self._place, session=hook_input.session, at=-1)
        if hook_input.session and not hook_input.resumed:
            forget_shown(self._place, hook_input.session)  # started, cleared or compacted
        try:
            start_text = self._look(folder)
        except PassphraseError:
            note_hook(self._place, locked=at)
            lines = [f"it is locked, so no memories are included: ipfsmem unlock{self._named}"]
        else:
            note_hook(self._place, locked=0, failed=0, failure="")
            self._once_printed.append(
                lambda: note_hook(self._place, session=hook_input.session, at=at, given=start_text.mark)
            )
            context, lines = start_text.text, [*start_text.lines]
        lines += self._not_synced(at)
        line = f"ipfsmem, memory {self._vault_name}: {'; '.join(lines)}" if lines else ""
        return answer(self._program, self._event, context=context, line=line)

    def _after_a_pull(self, hook_input: HookInput, folder: str) -> str:
        """Return the text after a pull with changes since this session was last given a text, if it differs from that. Opens no
        vault without such a pull."""
        from ipfsmem.device.agent_notes import background_notes, hook_notes, note_hook, syncing_notes

        at, notes = self._now(), hook_notes(self._place)
        delivered = notes.sessions.get(hook_input.session)
        if not hook_input.session or not takes_context(self._program, self._event):
            return ""
        if delivered is None and self._program in WITHOUT_START:
            delivered = -1
        if delivered is None:
            note_hook(self._place, session=hook_input.session, at=at)
            return ""
        synced = max(background_notes(self._place).brought, syncing_notes(self._place).brought)
        if synced <= delivered <= at:  # a later `delivered` is from a clock that was set back
            return ""
        start_text = self._look(folder)
        self._once_printed.append(
            lambda: note_hook(self._place, session=hook_input.session, at=at, given=start_text.mark)
        )
        return "" if start_text.mark == notes.given.get(hook_input.session) else start_text.text

    def _memories_for_prompt(self, hook_input: HookInput, folder: str) -> str:
        """Return memories for the prompt that this session was not shown yet. Opens no vault if the program sends no
        prompt."""
        if not (hook_input.session and hook_input.prompt and takes_context(self._program, self._event)):
            return ""
        from ipfsmem.agents.session_text import prompt_text  # and with it the vault
        from ipfsmem.device.shown_texts import note_shown, shown_to

        shown = shown_to(self._place, hook_input.session)
        fitting = prompt_text(
            self._vault_name,
            self._home,
            folder,
            self._program,
            hook_input.prompt,
            shown,
            hook_input.session,
            self._passphrase,
        )
        self._once_printed.append(lambda: note_shown(self._place, hook_input.session, fitting.marks))
        if not fitting.ready:
            self._start(folder)  # builds the index
        return fitting.text

    def _look(self, folder: str) -> SessionText:
        """Return the texts for the model and for the person. Raises PassphraseError while the keys are locked."""
        from ipfsmem.agents.session_text import SessionText, session_text  # and with it the vault
        from ipfsmem.config import context_tokens

        if not (takes_context(self._program, self._event) or shows_lines(self._program)):
            return SessionText()
        return session_text(
            self._vault_name, self._home, folder, self._program, context_tokens("index"), self._passphrase
        )

    def _not_synced(self, at: int) -> list[str]:
        from ipfsmem.device.agent_notes import background_notes

        notes = background_notes(self._place)
        if not notes.failing or at - notes.failing < _WARN_AFTER_MS:
            return []
        hours = (at - notes.failing) // 3_600_000
        return [f"not synced for {hours} h ({notes.failure}): ipfsmem sync{self._named}"]

    @property
    def _named(self) -> str:
        return "" if self._vault_name == "default" else f" --vault {self._vault_name}"


def _working_directory() -> str:
    """Return the working directory of this process, empty if it was removed."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def run_hook(
    event: str,
    program: str,
    vault_name: str,
    home: Path,
    *,
    stdin: IO[bytes],
    stdout: IO[bytes],
    now: Callable[[], int],
    start_sync: Callable[[str, Path, str], None],
    passphrase: str | None = None,
    environment: Mapping[str, str] | None = None,
    give_up: Callable[[], None] = lambda: os._exit(0),
) -> str:
    """Run a hook within its time limit, print its output, and return its error, empty on success. Raises nothing.

    `give_up` is called from another thread at the limit if nothing was printed yet.
    """
    place: Path | None = None
    hook: Hook | None = None
    printing = threading.Lock()

    def failed(failure: str) -> None:
        if place is not None:  # an invalid name has no folder
            from ipfsmem.device.agent_notes import note_hook

            note_hook(place, failed=now(), failure=failure)

    def over() -> None:
        if printing.acquire(blocking=False):
            failed("it took too long")
            with contextlib.suppress(OSError):
                start_sync(vault_name, home, "" if hook is None else hook.folder)
            give_up()

    bound = threading.Timer(BOUNDS.get(event, _BOUND), over)
    bound.daemon = True
    try:
        place = vault_folder(home, vault_name)
        bound.start()
        if event not in EVENTS:
            return f"unknown event {event}; events: {', '.join(EVENTS)}"
        hook = Hook(event, program, vault_name, home, now=now, start_sync=start_sync, passphrase=passphrase)
        printed = hook.run(_read(stdin), os.environ if environment is None else environment)
        if printing.acquire(blocking=False):  # else the limit was reached, and nothing was printed
            if printed:
                stdout.write(printed)
                stdout.flush()
            hook.note_printed()
        if hook.unreadable:
            failed("unreadable hook input")
            return f"unreadable hook input: {hook.unreadable}"
    except IpfsmemError as error:
        failed(error.kind)
        return str(error)
    except Exception as error:  # a bug of ours must not fail the agent
        failed(type(error).__name__)
        return f"unexpected {type(error).__name__}: {error}"
    finally:
        bound.cancel()
    return ""


def _read(stdin: IO[bytes]) -> bytes:
    """Read the program's input until the pipe or the JSON object ends, as programs may leave the pipe open. A terminal sends
    nothing."""
    if stdin.isatty():
        return b""
    read, data = getattr(stdin, "read1", stdin.read), b""
    while len(data) < MAX_INPUT and (more := read(64 * 1024)):
        data += more
        if data.rstrip(b"\0 \t\r\n").endswith(b"}") and is_whole(data):
            break
    return data
