"""A folder as a provider: a stick, a share, a synced folder."""

from ipfsmem_providers.directory.provider import DirectoryProvider

__all__ = ["DirectoryProvider"]
