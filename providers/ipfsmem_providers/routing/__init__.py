"""Delegated routing servers as a provider: names, nothing else."""

from ipfsmem_providers.routing.provider import RoutingProvider

__all__ = ["RoutingProvider"]
