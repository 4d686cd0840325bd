"""The MCP server, for any transport: tools, resources and prompts over one open memory.

Only `MemoryServer.server`, which the SDK runs, imports the SDK. All calls go through one worker thread, one after another, so
that a slow call leaves the connection alive. Errors of a memory are answers that a model can read; a bug is one line on stderr
and an answer without details.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from ipfsmem.bundle.fence import clean_text
from ipfsmem.canonical import write_json
from ipfsmem.config import refuse_agents_switched_off
from ipfsmem.device.lock import WAIT, one_wait
from ipfsmem.errors import IpfsmemError, NotFoundError
from ipfsmem.holding import Holder, Mark
from ipfsmem.in_thread import in_thread
from ipfsmem.mcp import wire
from ipfsmem.mcp.addresses import TEMPLATES, address, parts
from ipfsmem.mcp.lines import HALF_A_CHARACTER, NOT_JSON, TOO_LONG
from ipfsmem.mcp.roots import Projects, folders_of
from ipfsmem.open_vault.audit import acting, acting_as, collecting_doubts, with_doubts
from ipfsmem.tools import GUIDANCE, Tool, ToolResult, toolset
from ipfsmem.tools.schema import JSON
from ipfsmem.tools.tool import refusal
from ipfsmem.tools.tool_context import Session

if TYPE_CHECKING:
    from pathlib import Path

    import mcp_types as types
    from mcp.server import Server
    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession
    from mcp.server.subscriptions import InMemorySubscriptionBus

    from ipfsmem.compat.programs import Program

T = TypeVar("T")

#: Name and title of the server.
NAME: Final = "ipfsmem"
TITLE: Final = "Memory"
#: Resources in one page of a list.
PAGE: Final = 200
#: Maximum number of stored conversations, and of subscriptions of each.
MAX_CONVERSATIONS: Final = 256
MAX_SUBSCRIPTIONS: Final = 1_000
_NOT_READ: Final = {
    TOO_LONG: "The message exceeds the size limit, and was not read: send less at once.",
    HALF_A_CHARACTER: "The message contains a lone surrogate (half a character), and was not read: send the whole character, or omit it.",
    NOT_JSON: "The message is not valid JSON, or nested too deep, and was not read.",
}
#: Tools that need the conversation of a call, which HTTP without sessions does not name.
OF_ONE_CONVERSATION: Final = frozenset(["save_session_context", "memory_store"])
_PROGRAM: Final = "program "
#: Time limit in seconds for a program to list its roots.
_ANSWERS_ROOTS: Final = 2.0
MARKDOWN: Final = "text/markdown"

PROMPTS: Final = {
    "memory": ("Stored memories", "The index of the memory, or the memories that match some words."),
    "save": ("Save what lasts", "Review this conversation and save what later ones need."),
}
_EMPTY: Final = "This memory is empty."
_SAVE: Final = (
    "Review our conversation so far. For each lasting preference, fact about me, convention, restriction or decision in it, "
    "check with recall whether it is saved already; then remember it, or extend the existing memory. List what you saved and what you skipped on purpose, one line each."
)


def arguments_of(prompt: str) -> JSON:
    """Return the arguments of a prompt in the form of the protocol."""
    about = {"name": "query", "description": "A few words; default: the whole index."}
    return {"arguments": [about]} if prompt == "memory" else {}


class Conversation:
    """The state of one connection: its tools and its subscriptions."""

    def __init__(self, tools: Iterable[Tool], about: Session) -> None:
        self.tools = {tool.name: tool for tool in tools}
        #: The texts shown to it, and its project.
        self.about = about
        #: The working folders that its program named, None for each URI of another kind; None as a whole before the program was
        #: asked, or if it has no roots.
        self.roots: list[Path | None] | None = None
        self.subscribed: set[str] = set()
        #: The last session object of a client that keeps a channel open for notifications.
        self.session: ServerSession | None = None


class MemoryServer:
    """The MCP server of one memory; a transport runs `server`."""

    def __init__(
        self,
        holder: Holder,
        *,
        scope: str | None = None,
        read_only: bool = False,
        names: Iterable[str] | None = None,
        program: Program | Literal[""] = "",
        by_type: bool = False,
        structured: bool = False,
        folder: Path | None = None,
    ) -> None:
        """`scope`, `read_only`, `names`, `by_type`: as for `toolset`; `program`: another program's tools instead. `structured`:
        answers also have a structured form. `folder`: where a program started the server; its project is used if the program
        names no roots. Raises UsageError, KeyNameError."""
        self.holder = holder
        self._structured = structured
        self._projects = Projects(folder)
        self._scope = scope
        self._read_only = read_only
        self._program = program
        self._by_type = by_type
        self._names = None if names is None else list(names)
        self._conversations: OrderedDict[str, Conversation] = OrderedDict()
        self._conversation_tools(Session())  # refused now, not at the first call
        self._one_at_a_time = asyncio.Lock()
        #: The resources when clients were last notified; None without subscribers.
        self.told: tuple[Mark, dict[str, str]] | None = None
        #: Number of open requests.
        self.in_flight = 0
        #: Called before each call of a tool that may write.
        self.before_write: Callable[[], None] | None = None

    @functools.cached_property
    def bus(self) -> InMemorySubscriptionBus:
        """Return the events for clients that listen, as in the newer protocol."""
        from mcp.server.subscriptions import InMemorySubscriptionBus

        return InMemorySubscriptionBus()

    @functools.cached_property
    def server(self) -> Server[Any]:
        """Return the SDK's server, imported on first use."""
        return self._server()

    @property
    def instructions(self) -> str:
        """Return the instructions for the model."""
        if not self._program:
            return GUIDANCE
        from ipfsmem.compat.programs import guidance

        return guidance(self._program)

    def _conversation_tools(self, session: Session) -> list[Tool]:
        if self._program:
            from ipfsmem.compat.programs import program_tools

            return program_tools(
                self.holder.memory,
                self._program,
                scope=self._scope,
                read_only=self._read_only,
                session=session,
            )
        return toolset(
            self.holder.memory,
            self._names,
            scope=self._scope,
            read_only=self._read_only,
            session=session,
            by_type=self._by_type,
        )

    def conversation(self, ctx: ServerRequestContext[Any, Any]) -> Conversation:
        """Return the conversation of a request: one per process over stdio, per session over HTTP, and per program over HTTP
        without sessions."""
        return self.conversation_of(_conversation_id(ctx))

    def conversation_of(self, caller: str = "") -> Conversation:
        """Return the conversation of an id; without an id that of stdio."""
        conversation = self._conversations.get(caller)
        if conversation is None:
            session = Session(shared=caller.startswith(_PROGRAM))
            tools = self._conversation_tools(session)
            if caller.startswith(_PROGRAM):
                tools = [tool for tool in tools if tool.name not in OF_ONE_CONVERSATION]
            conversation = self._conversations[caller] = Conversation(tools, session)
            while len(self._conversations) > MAX_CONVERSATIONS:
                self._conversations.popitem(last=False)
        self._conversations.move_to_end(caller)
        return conversation

    @property
    def conversations(self) -> list[Conversation]:
        """Return the stored conversations."""
        return list(self._conversations.values())

    async def in_thread(self, work: Callable[[], T], *, wait: float = WAIT) -> T:
        """Run `work` in the worker thread, one call at a time. `wait`: total seconds to wait for other processes."""
        by = acting().by

        def done() -> T:
            with acting_as("mcp", by), one_wait(wait):
                return work()

        async with self._one_at_a_time:
            return await in_thread(done)

    # -- requests of the protocol ----------------------------------------------------------------------------

    def _server(self) -> Server[Any]:
        from mcp.server import Server
        from mcp.server.subscriptions import ListenHandler

        listen = ListenHandler(self.bus, max_subscriptions=MAX_CONVERSATIONS, max_buffered_events=256)

        async def listening(ctx: Any, params: types.SubscriptionsListenRequestParams) -> Any:
            await self._watched()
            return await listen(ctx, params)

        async def counted(ctx: ServerRequestContext[Any, Any], call_next: Any) -> Any:
            if ctx.request_id is None or ctx.method == "subscriptions/listen":
                return await call_next(ctx)
            self.in_flight += 1
            try:
                return await call_next(ctx)
            finally:
                self.in_flight -= 1

        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # roots are part of the protocols with a handshake, which most programs speak
            server = self._with_handlers(Server, listening)
        server.middleware.append(counted)
        return server

    def _with_handlers(self, make: type[Server[Any]], listening: Any) -> Server[Any]:
        return make(
            NAME,
            version=version("ipfsmem"),
            title=TITLE,
            instructions=self.instructions,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=listening,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_roots_list_changed=self._roots_changed,
        )

    def listed_tools(self, there: Conversation) -> list[JSON]:
        """Return the answer to `tools/list` in a conversation, in the form of the protocol."""
        return [wire.tool(one, structured=self._structured) for one in there.tools.values()]

    async def call_tool(
        self,
        there: Conversation,
        name: str,
        arguments: JSON,
        by: str,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> JSON | None:
        """Return the answer to `tools/call`, in the form of the protocol; `by`: the program that calls. None if the call was
        cancelled before it began."""

        def before() -> None:
            if self.before_write is not None and not there.tools[name].read_only:
                self.before_write()
            self._choose_project(there)

        with acting_as("mcp", by):
            done = await self.in_thread(
                lambda: None if is_cancelled() else _called(there.tools, name, arguments, before)
            )
        return None if done is None else wire.result(done, structured=self._structured)

    def _choose_project(self, there: Conversation) -> None:
        """Find the scope of the project that the program of a conversation works on, unless the person chose one."""
        if self._scope is None:
            with contextlib.suppress(IpfsmemError):  # a locked memory: the call reports it
                there.about.project = self._projects.scope_of(self.holder.memory(), there.roots)

    async def _list_tools(self, ctx: Any, params: Any) -> types.ListToolsResult:
        import mcp_types as types

        listed = self.listed_tools(self.conversation(ctx))
        return types.ListToolsResult(tools=[types.Tool.model_validate(one, by_name=False) for one in listed])

    async def _call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        import mcp_types as types

        there = self.conversation(ctx)
        await self._ask_roots(ctx, there)
        client = ctx.session.client_params
        by = client.client_info.name if client is not None else ""
        answered = await self.call_tool(there, params.name, params.arguments or {}, by)
        return types.CallToolResult.model_validate_json(write_json(answered), by_name=False)

    async def _ask_roots(self, ctx: ServerRequestContext[Any, Any], there: Conversation) -> None:
        """Ask a program once for its working folders, if it has that capability."""
        client = ctx.session.client_params
        if there.roots is not None or client is None or client.capabilities.roots is None:
            return
        there.roots = []
        with warnings.catch_warnings(), contextlib.suppress(Exception):  # optional
            warnings.simplefilter("ignore")  # newer protocols have no roots; older programs do
            async with asyncio.timeout(_ANSWERS_ROOTS):
                answer = await ctx.session.list_roots()
            there.roots = folders_of(str(one.uri) for one in answer.roots)

    async def _roots_changed(self, ctx: Any, params: Any) -> None:
        self.conversation(ctx).roots = None

    async def _list_resources(self, ctx: Any, params: Any) -> types.ListResourcesResult:
        import mcp_types as types

        there = await self._hear(ctx)
        await self._ask_roots(ctx, there)
        after = (params.cursor if params is not None else None) or ""
        resources = await self._answered(lambda: self.resources(there))
        shown = [one for one in resources if one[0] > after][:PAGE]
        more = shown[-1][0] if shown and shown[-1][0] != resources[-1][0] else None
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=uri,
                    name=name,
                    title=title or None,
                    description=description or None,
                    mime_type=MARKDOWN,
                )
                for uri, name, title, description in shown
            ],
            next_cursor=more,
        )

    def resources(self, there: Conversation | None = None) -> list[tuple[str, str, str, str]]:
        """Return URI, name, title and description of the indexes and the person's own memories, by URI."""
        scope = self._usual_scope(there)
        rows = [
            (
                address(one),
                f"index{f' of {one}' if one else ''}",
                "Index",
                "All memories, one line each.",
            )
            for one in dict.fromkeys((scope, ""))
        ]
        for item in self.holder.memory().stack(scope).list():
            if item.own:
                title, description = (
                    " ".join(clean_text(text).split()) for text in (item.file.name, item.file.description)
                )
                rows.append((address(item.scope, item.key), item.key, title, description))
        return sorted(rows)

    def shown(self) -> dict[str, str]:
        """Return a digest of each resource by its URI, which changes with the text."""
        memory = self.holder.memory()
        digests = {}
        for item in memory.stack(self._usual_scope()).list():
            digest = item.sha256
            if digest is None and item.fetched:  # merged from several
                reading = memory.scope(item.scope).read(item.key, counts=False)
                digest = reading.sha256 if reading is not None else None
            digests[address(item.scope, item.key)] = digest or ""
        return digests

    def look(self) -> tuple[Mark, dict[str, str]] | None:
        """Return `shown` with the mark that changes when it may have changed; None while the memory is locked."""
        mark = self.holder.mark()
        return None if mark is None else (mark, self.shown())

    def indexes(self) -> list[str]:
        """Return the URIs of the indexes."""
        return [address(one) for one in dict.fromkeys((self._usual_scope(), ""))]

    def _usual_scope(self, there: Conversation | None = None) -> str:
        if self._scope is not None:
            return self._scope
        if there is None:
            there = next(reversed(self._conversations.values()), None)
        if there is not None:
            self._choose_project(there)
        return (there.about.project if there is not None else "") or self.holder.memory().in_scope

    async def _list_templates(self, ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
        import mcp_types as types

        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=uri, name=title, title=title, description=description, mime_type=MARKDOWN
                )
                for uri, title, description in TEMPLATES
            ]
        )

    async def _read_resource(
        self, ctx: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        import mcp_types as types

        text = await self._answered(lambda: self.text_of(str(params.uri)))
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=params.uri, mime_type=MARKDOWN, text=text)]
        )

    def text_of(self, uri: str) -> str:
        """Return the text of a URI, fenced, and why it may be outdated. Raises NotFoundError, KeyNameError."""
        with collecting_doubts() as doubts:
            text = self._text_of(uri)
        return with_doubts(text, doubts)

    def _text_of(self, uri: str) -> str:
        from ipfsmem.memories.context_layouts import MOST_TOKENS
        from ipfsmem.memories.writers import Writers
        from ipfsmem.tools.tool_context import fenced

        scope, key = parts(uri)
        memory = self.holder.memory()
        if not key:
            return memory.scope(scope).context(max_tokens=MOST_TOKENS).text or _EMPTY
        reading = memory.scope(scope).read(key)
        if reading is None:
            raise NotFoundError(f"there is no memory at {uri}")
        return fenced(Writers(memory.replica).quoted(reading))

    async def _subscribe(self, ctx: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
        import mcp_types as types
        from mcp.shared.exceptions import MCPError

        uri = str(params.uri)
        await self._answered(lambda: parts(uri))
        there = await self._hear(ctx)
        if len(there.subscribed) >= MAX_SUBSCRIPTIONS:
            raise MCPError(
                types.INVALID_PARAMS, f"at most {MAX_SUBSCRIPTIONS} resources can be subscribed to"
            )
        there.subscribed.add(uri)
        return types.EmptyResult()

    async def _unsubscribe(self, ctx: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        import mcp_types as types

        self.conversation(ctx).subscribed.discard(str(params.uri))
        return types.EmptyResult()

    async def _hear(self, ctx: ServerRequestContext[Any, Any]) -> Conversation:
        """Record that a client wants notifications, if its protocol keeps a channel open for them."""
        there = self.conversation(ctx)
        there.session = ctx.session
        await self._watched()
        return there

    async def _watched(self) -> None:
        """Begin to watch for changes."""
        if self.told is None:
            with contextlib.suppress(Exception):  # the next read reports the error
                self.told = await self.in_thread(self.look)

    async def _list_prompts(self, ctx: Any, params: Any) -> types.ListPromptsResult:
        import mcp_types as types

        return types.ListPromptsResult(
            prompts=[
                types.Prompt.model_validate(
                    {"name": name, "title": title, "description": description, **arguments_of(name)},
                    by_name=False,
                )
                for name, (title, description) in PROMPTS.items()
            ]
        )

    async def _get_prompt(self, ctx: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        import mcp_types as types
        from mcp.shared.exceptions import MCPError

        if params.name not in PROMPTS:
            raise MCPError(
                types.INVALID_PARAMS, f"unknown prompt {params.name[:60]!a}; prompts: {', '.join(PROMPTS)}"
            )
        text = _SAVE
        if params.name == "memory":
            query = (params.arguments or {}).get("query", "").strip()
            there = self.conversation(ctx)
            await self._ask_roots(ctx, there)

            def context() -> str:
                with collecting_doubts() as doubts:
                    text = self.holder.memory().scope(self._usual_scope(there)).context(query or None).text
                return with_doubts(text or _EMPTY, doubts)

            text = await self._answered(context)
        return types.GetPromptResult(
            description=PROMPTS[params.name][1],
            messages=[
                types.PromptMessage(
                    role="user",
                    content=types.TextContent(text=text),
                )
            ],
        )

    async def _answered(self, work: Callable[[], T]) -> T:
        """Return the result of `work` with the memory; errors become errors of the protocol."""
        import mcp_types as types
        from mcp.shared.exceptions import MCPError

        def allowed() -> T:
            refuse_agents_switched_off()
            return work()

        try:
            return await self.in_thread(allowed)
        except IpfsmemError as error:
            code = types.INVALID_PARAMS if isinstance(error, NotFoundError) else types.INTERNAL_ERROR
            raise MCPError(code, refusal(error).text.removeprefix("Error: ")) from None
        except Exception as error:
            raise MCPError(types.INTERNAL_ERROR, unexpected(error)) from None


def _called(
    tools: dict[str, Tool], name: str, arguments: dict[str, Any], before: Callable[[], None]
) -> ToolResult:
    tool = tools.get(name)
    if tool is None:
        message = _NOT_READ.get(name) or f"Unknown tool {name[:60]!a}. Tools: {', '.join(tools)}."
        return ToolResult(
            f"Error: {message}",
            {"error": {"kind": "UsageError", "message": message, "hint": ""}},
            is_error=True,
        )
    try:
        before()
        return tool.call(**arguments)
    except Exception as error:
        message = unexpected(error)
        return ToolResult(
            f"Error: {message}",
            {"error": {"kind": "Unexpected", "message": message, "hint": ""}},
            is_error=True,
        )


def unexpected(error: Exception) -> str:
    """Print one line for the operator, and return the message for the client, which has no details."""
    print(f"ipfsmem serve mcp: unexpected {type(error).__name__}: {error}", file=sys.stderr)
    return f"internal error ({type(error).__name__}); nothing was acknowledged"


def _conversation_id(ctx: ServerRequestContext[Any, Any]) -> str:
    request = ctx.request
    if request is None:
        return ""
    session = request.headers.get("mcp-session-id")
    if session:
        return f"session {session[:200]}"
    client = ctx.session.client_params
    return f"{_PROGRAM}{client.client_info.name[:200] if client is not None else ''}"
