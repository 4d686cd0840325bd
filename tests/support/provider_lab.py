"""Runs one call of a provider in its own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from ipfsmem.provider.contract import Provider


def run(provider: Provider, body: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of the coroutine and close the provider."""

    async def main() -> Any:
        try:
            return await body
        finally:
            await provider.close()

    return asyncio.run(main())
