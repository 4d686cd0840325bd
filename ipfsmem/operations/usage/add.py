"""The operation `usage.add`: record one use of a model."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ipfsmem.memories.usage import MAX_NAME, MOST, Used
from ipfsmem.operation import Cli, View, operation


@operation(
    summary="Record one use of a model",
    right="write",
    about="target",
    raises=(
        "UsageError: neither provider nor model was given.",
        "StorageError: it cannot be stored.",
    ),
    http="POST /v1/usage",
    status=201,
    tool="note_usage",
    title="Note a use of a model",
    for_models="Record one use of a model as a timeline event. Name the provider or the model.",
)
def add(
    view: View,
    *,
    provider: Annotated[str, Meta(max_length=MAX_NAME, description="Provider of the model.")] = "",
    model: Annotated[str, Meta(max_length=MAX_NAME, description="Name of the model.")] = "",
    agent: Annotated[str, Meta(max_length=MAX_NAME, description="Agent that used the model.")] = "",
    input_tokens: Annotated[
        int, Meta(ge=0, le=MOST, description="Input tokens."), Cli("input", metavar="N")
    ] = 0,
    output_tokens: Annotated[
        int, Meta(ge=0, le=MOST, description="Output tokens."), Cli("output", metavar="N")
    ] = 0,
    cost_usd: Annotated[
        float,
        Meta(ge=0, le=MOST // 1_000_000, description="Cost in US dollars."),
        Cli("cost", metavar="USD"),
    ] = 0.0,
) -> Used:
    """Record one use of a model as an event of the timeline. It is durable when this returns."""
    from ipfsmem.operations.usage.recording import add_use

    return add_use(view.opened, view.scope, agent, provider, model, input_tokens, output_tokens, cost_usd)
