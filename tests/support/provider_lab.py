"""One call of a provider in an event loop of its own, as tests of providers make it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from ipfsmem.provider.contract import Provider


def run(provider: Provider, body: Coroutine[Any, Any, Any]) -> Any:
    """What the coroutine gives; the provider is closed in the end."""

    async def main() -> Any:
        try:
            return await body
        finally:
            await provider.close()

    return asyncio.run(main())
