"""A node of one's own as a provider: Kubo, and what speaks its RPC."""

from ipfsmem_providers.kubo.provider import KuboProvider

__all__ = ["KuboProvider"]
