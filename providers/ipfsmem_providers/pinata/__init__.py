"""Pinata as a provider."""

from ipfsmem_providers.pinata.provider import PinataProvider

__all__ = ["PinataProvider"]
