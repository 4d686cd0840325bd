"""Record uses of models and their cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipfsmem.memories.usage import KIND, MOST, Used, as_name, usage_data, used
from ipfsmem.operations.events import add_event

if TYPE_CHECKING:
    from ipfsmem.open_vault.handle import VaultHandle


def add_use(
    opened: VaultHandle,
    scope: str,
    agent: str,
    provider: str,
    model: str,
    input_tokens: int,
    output_tokens: int,
    cost_usd: float,
) -> Used:
    """Record one use in the scope that a scope leads to. Raises UsageError for names, StorageError."""
    data = usage_data(agent, provider, model, input_tokens, output_tokens, cost_usd)
    target = opened.scopes.target(scope) if scope else ""
    return used([add_event(opened, target, KIND, data)])[0]


def note_model_use(
    opened: VaultHandle, scope: str, agent: str, model: str, tokens_in: int, tokens_out: int
) -> None:
    """Record what a model was used for here, with its price in the settings. Raises StorageError,
    PassphraseError and ClosedError."""
    from ipfsmem.config import settings

    model_settings = settings().model
    prices = (
        (model_settings.input_price, model_settings.output_price)
        if model_settings is not None
        else (0.0, 0.0)
    )
    cost = (tokens_in * prices[0] + tokens_out * prices[1]) / 1_000_000
    provider = model_settings.provider if model_settings is not None else ""
    # The model took its time: the vault may be locked or closed by now.
    with opened.lock:
        opened.refuse_closed("usage")
        add_use(
            opened,
            scope,
            agent,
            provider,
            as_name(model),
            min(tokens_in, MOST),
            min(tokens_out, MOST),
            min(cost, MOST / 1_000_000),
        )
