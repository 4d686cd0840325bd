"""A provider of a memory that cannot be opened now: its token is not set, its package is gone, its spec is none.

It stands in its place like one that is down, so that everything local goes on, other providers are used, and the user
can take it off the list. It says why at every call, and never does anything.
"""

from __future__ import annotations

from typing import Final, NoReturn

from ipfsmem.errors import ConfigError, ProviderRefused
from ipfsmem.provider.base import ProviderBase
from ipfsmem.provider.contract import Capabilities

#: What a sync asks of every provider first, so that it hears of it whether it reads or publishes.
_CAPABILITIES: Final = Capabilities(names=True)


class Unready(ProviderBase):
    """See ipfsmem.provider.contract; every call raises ProviderRefused with the words of the ConfigError."""

    def __init__(self, spec: str, problem: ConfigError) -> None:
        self._spec = spec
        self.problem = str(problem)
        self._hint = problem.hint

    @property
    def name(self) -> str:
        """The spec, as nothing else is known."""
        return self._spec

    @property
    def capabilities(self) -> Capabilities:
        """The least that makes a sync call it."""
        return _CAPABILITIES

    def _refuse(self, what: str) -> NoReturn:
        raise ProviderRefused(f"{self._spec} cannot be used: {self.problem}", hint=self._hint)
