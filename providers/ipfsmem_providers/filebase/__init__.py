"""Filebase as a provider."""

from ipfsmem_providers.filebase.provider import FilebaseProvider

__all__ = ["FilebaseProvider"]
