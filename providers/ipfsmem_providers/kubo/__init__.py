"""The user's own node as a provider: Kubo, and others with its RPC."""

from ipfsmem_providers.kubo.provider import KuboProvider

__all__ = ["KuboProvider"]
