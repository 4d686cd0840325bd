"""A branch of a git repository as a provider."""

from ipfsmem_providers.git.provider import GitProvider

__all__ = ["GitProvider"]
