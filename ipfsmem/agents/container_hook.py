"""The hooks of an agent's program in a container: an agent key opens the vault, and a session starts with its context.

Nothing is read or written in a home. Other events print nothing: such a key only reads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import IO, Final

from ipfsmem.agents.hook_programs import EVENTS, MAX_INPUT, answer, parse_hook_input, takes_context
from ipfsmem.errors import IpfsmemError

#: Time limit in seconds: the vault comes over the network.
BOUND: Final = 30.0


def run_container_hook(
    event: str,
    program: str,
    *,
    stdin: IO[bytes],
    stdout: IO[bytes],
    environment: Mapping[str, str] | None = None,
    give_up: Callable[[], None] = lambda: os._exit(0),
) -> str:
    """Run a hook, print its output, and return its error, empty on success. Raises nothing.

    `give_up` is called from another thread at the limit if nothing was printed yet.
    """
    if event not in EVENTS:
        return f"unknown event {event}; events: {', '.join(EVENTS)}"
    if event != "session-start" or not takes_context(program, event):
        return ""
    printing = threading.Lock()

    def over() -> None:
        if printing.acquire(blocking=False):
            give_up()

    bound = threading.Timer(BOUND, over)
    bound.daemon = True
    bound.start()
    try:
        variables = os.environ if environment is None else environment
        wrong = "" if stdin.isatty() else parse_hook_input(stdin.read(MAX_INPUT), variables).unreadable
        printed = answer(program, event, context=_text(program, variables.get("IPFSMEM_SCOPE", "")))
        if printing.acquire(blocking=False):
            stdout.write(printed)
            stdout.flush()
        return f"unreadable hook input: {wrong}" if wrong else ""
    except IpfsmemError as error:
        return str(error)
    except Exception as error:  # a bug of ours must not fail the agent
        return f"unexpected {type(error).__name__}: {error}"
    finally:
        bound.cancel()


def _text(program: str, scope: str) -> str:
    from ipfsmem.agents.session_text import text_of
    from ipfsmem.config import context_tokens, settings
    from ipfsmem.memory import Memory
    from ipfsmem.open_vault.audit import acting_as

    if not settings().agents.enabled:
        return ""
    with Memory.load() as memory, acting_as("hook", program):
        return text_of(memory.scope(scope), context_tokens("index"))
