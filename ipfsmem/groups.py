"""Groups of methods of a memory, such as `memory.sessions` and `memory.stack()`: the declared operations, and methods for programs
alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from ipfsmem.memories.facts import keep_shown
from ipfsmem.memories.session_reader import SessionFacts
from ipfsmem.methods import (
    BundleMethods,
    DreamMethods,
    FactMethods,
    GraphMethods,
    HiddenMethods,
    ScopeMethods,
    SessionMethods,
    StackMethods,
    StackTimelineMethods,
    TimelineMethods,
    UsageMethods,
    ValueMethods,
)
from ipfsmem.open_vault.conversation import Conversation
from ipfsmem.open_vault.handle import VaultHandle
from ipfsmem.open_vault.method_group import MethodGroup
from ipfsmem.open_vault.scopes import MemoryScopes
from ipfsmem.operation import View
from ipfsmem.operations.sessions.stored import sessions_of
from ipfsmem.sessions.compaction import (
    SessionTranscript,
    StoredSession,
    Summariser,
    is_mark,
    summaries_given,
    told,
)

if TYPE_CHECKING:
    from ipfsmem.files.exporting import LeftOut
    from ipfsmem.memories.sessions_here import AllSessions
    from ipfsmem.operations.bundles.content import Unpublished
    from ipfsmem.operations.graph.stored import Edge, Node
    from ipfsmem.operations.sessions.summaries import ModelSummariser


class MemoryStack(StackMethods):
    """Several scopes of a vault, read as one. A memory of the first scope that has it is shown; results name its scope. A text of
    others does not hide an own text of a later scope: otherwise a writer of one scope could hide the person's own texts.
    Read-only."""

    def __init__(self, opened: VaultHandle, scopes: Iterable[str]) -> None:
        """`scopes`: in order of precedence. Forgotten scopes are empty."""
        self._open = opened
        #: The scopes that are read, in order of precedence.
        self.scopes = [*scopes]

    @property
    def timeline(self) -> StackTimeline:
        """The timeline of all these scopes."""
        return StackTimeline(self._view())

    def _view(self) -> View:
        return View(self._open, self.scopes[0], tuple(self.scopes))


class _Group(MethodGroup):
    """A group of methods on one scope."""

    def __init__(self, opened: VaultHandle, scope: str) -> None:
        super().__init__(opened)
        self._scope = scope

    def _view(self) -> View:
        return View(self._open, self._scope)


class StackTimeline(StackTimelineMethods):
    """The events of several scopes, read as one timeline."""

    def __init__(self, view: View) -> None:
        self._viewed = view

    def _view(self) -> View:
        return self._viewed


class MemoryTimeline(TimelineMethods, _Group):
    """The events of one scope and of the scopes redirected to it."""


class Facts(FactMethods, _Group):
    """The facts, procedures and episodes of one scope. Each is a memory file with a category, so `read`, `list` and `recall` find it."""

    def keep(self, key: str, *, seen: str | None = None) -> None:
        """Store the text of any memory in its history before its writer replaces it, so that `restore` can restore it. A pending
        text is not stored. Raises NotFoundError, ChangedError."""
        with self.keeping(key, seen=seen):
            pass

    @contextlib.contextmanager
    def keeping(self, key: str, *, seen: str | None = None) -> Iterator[None]:
        """Do `keep` in one transaction with the writes inside the block: if they fail, no text is stored."""
        target = self._view().target
        self._open.ingest_file(key, target)
        with self._replica.transaction():
            keep_shown(self._open.memories.in_scope(target), key, seen)
            yield


class Values(ValueMethods, _Group):
    """The values of one scope. A key is 1 to 256 bytes of any characters; a value is a text or any JSON value."""


class Hidden(HiddenMethods, _Group):
    """The memories of one scope that this device hides."""


class Graph(GraphMethods, _Group):
    """The graph of one scope. Arguments for an entity accept its key or its name."""

    def named(self, names: Iterable[str]) -> list[Node]:
        """Return the entities with these names or keys, by key; unknown ones are left out."""
        from ipfsmem.operations.graph.stored import graph_in, node

        graph = graph_in(self._view())
        keys = {key for name in names for key in graph.named(name.strip())}
        return [node(graph.entities[key]) for key in sorted(keys)]

    def touching(self, keys: Iterable[str], *, limit: int) -> list[Edge]:
        """Return the relations that begin or end at one of these entities. Raises NotFoundError."""
        from ipfsmem.operations.graph.stored import edge, graph_in, key_in

        graph = graph_in(self._view())
        return [edge(one) for one in islice(graph.touching([key_in(graph, key) for key in keys]), limit)]

    def called(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the name of each entity by key; the key itself if the name belongs to another entity too."""
        from ipfsmem.operations.graph.stored import graph_in

        graph = graph_in(self._view())
        return {key: graph.called(key) if key in graph.entities else key for key in keys}


class Dreams(DreamMethods, _Group):
    """The dreams of one scope. A dream proposes changes that clean up its memories; the proposal can be applied and undone."""


class Scopes(ScopeMethods, MemoryScopes):
    """The scopes of a vault. `memory.scope(name)` reads and writes the content of one."""

    def _view(self) -> View:
        return View(self._open, "")


class Bundles(BundleMethods, _Group):
    """Export and import of all scopes, or of one."""

    def __init__(self, opened: VaultHandle, chosen: str | None) -> None:
        """`chosen`: the scope to export or import; None: all scopes."""
        super().__init__(opened, chosen or "")
        self._chosen = chosen

    def _view(self) -> View:
        return View(self._open, self._scope, named=self._chosen)

    def left_out(self) -> LeftOut:
        """What a blob omits: conflict copies, texts that are not on this device or not UTF-8, sessions stored only on this device,
        and, unless one scope was chosen (`scope`), all scopes except the unnamed one."""
        from ipfsmem.operations.bundles.content import everything_in, left_out_of

        view = self._view()
        return left_out_of(view, everything_in(view))

    def unpublished(self) -> Unpublished:
        """Return the data that no published version has."""
        from ipfsmem.operations.bundles.content import unpublished

        return unpublished(self._view())


class Usage(UsageMethods, _Group):
    """The recorded uses of models in one scope."""


class Sessions(SessionMethods, _Group):
    """The sessions of one scope. A session exists from its first item on; any printable text is a valid name."""

    def known(self) -> list[SessionFacts]:
        """Return the sessions without their messages, including damaged ones, last written first. Raises NotFoundError if one is
        not fetched."""
        return self._sessions().listing()

    def told(self, session: str) -> SessionTranscript:
        """Return a whole session, with its title and last summary. Raises NotFoundError if a part of it is not fetched."""
        return told(self._sessions().entries(session))

    def kept(self, session: str) -> StoredSession:
        """Return a whole session, for a program with a history of its own. Raises NotFoundError if a part of it is not fetched."""
        entries = self._sessions().entries(session)
        device = self._replica.device.id
        return StoredSession(
            told(entries),
            [(entry.item, entry.place[1] == device) for entry in entries if not is_mark(entry.item)],
            frozenset(summaries_given(entries)),
        )

    def seen(self, session: str) -> str:
        """Return a hash of the current content of a session, for `forget`. Raises NotFoundError if a part of it is not fetched."""
        return self._sessions().seen(session)

    def model_summariser(self) -> ModelSummariser:
        """Return a summariser for `compact` and `conversation` that asks the model of the settings' table `[model]`, which receives
        the summarised messages. Raises ConfigError if the settings name none."""
        from ipfsmem.operations.sessions.summaries import ModelSummariser  # rarely needed

        return ModelSummariser()

    def conversation(self, session: str, *, summarise: Summariser | None = None) -> Conversation:
        """Return a session for an agent's loop, with methods to resume it and to save each turn, and automatic compaction. Its
        methods raise no errors.

        `summarise`: writes the summaries; by default they consist of sentences of the messages. Raises ConfigError for invalid
        settings.
        """
        from ipfsmem.config import settings

        def turn_over(text: str) -> None:
            running = self._open.plugins()
            if running is not None:
                running.turn_complete(session, text)

        return Conversation(self, session, settings().sessions, summarise, turn_over)

    def _sessions(self) -> AllSessions:
        """Return the sessions after importing edits of linked folders."""
        self._open.ingest_edits()
        return sessions_of(self._view())
