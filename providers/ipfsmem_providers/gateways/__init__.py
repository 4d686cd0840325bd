"""Gateways as a provider: blocks and trees are read, nothing is stored."""

from ipfsmem_providers.gateways.provider import Gateways, open_gateways

__all__ = ["Gateways", "open_gateways"]
