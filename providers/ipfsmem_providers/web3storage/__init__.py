"""A w3up service as a provider: web3.storage and its like."""

from ipfsmem_providers.web3storage.provider import Web3Storage

__all__ = ["Web3Storage"]
