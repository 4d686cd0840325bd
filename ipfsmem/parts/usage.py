"""`memory.usage`: what models were used for and what it cost, as was noted on any device."""

from __future__ import annotations

import builtins
from datetime import UTC, tzinfo

import msgspec

from ipfsmem.config import settings
from ipfsmem.errors import UsageError
from ipfsmem.memories.usage import (
    BYS,
    KIND,
    MOST,
    By,
    UsageTotal,
    Used,
    as_csv,
    as_name,
    totals,
    usage_data,
    used,
)
from ipfsmem.parts.part import MemoryPart
from ipfsmem.parts.timeline import MemoryTimeline
from ipfsmem.parts.vault_handle import VaultHandle

#: Days, the first and the last.
Days = tuple[str, str]


class Budget(msgspec.Struct, frozen=True):
    """What was spent of a limit in the settings, in millionths of a US dollar: of this UTC `day` or `month`. `limit` 0: there is none."""

    period: str
    spent: int
    limit: int

    @property
    def over(self) -> bool:
        """Whether more was spent than the limit."""
        return 0 < self.limit < self.spent


def note_model_use(opened: VaultHandle, scope: str, agent: str, model: str, given: int, said: int) -> None:
    """Note what a model was used for here, with what the settings say that it costs. Raises StorageError."""
    known = settings().model
    prices = (known.input_price, known.output_price) if known is not None else (0.0, 0.0)
    MemoryUsage(opened, scope).add(
        agent=agent,
        provider=known.provider if known is not None else "",
        model=as_name(model),
        input_tokens=min(given, MOST),
        output_tokens=min(said, MOST),
        cost_usd=min((given * prices[0] + said * prices[1]) / 1_000_000, MOST / 1_000_000),
    )


class MemoryUsage(MemoryPart):
    """The uses of one scope."""

    def __init__(self, opened: VaultHandle, scope: str) -> None:
        super().__init__(opened)
        self._timeline = MemoryTimeline(opened, scope)

    def add(
        self,
        *,
        provider: str = "",
        model: str = "",
        agent: str = "",
        input_tokens: int = 0,
        output_tokens: int = 0,
        cost_usd: float = 0.0,
    ) -> Used:
        """Note one use, durable when this returns. Raises UsageError."""
        data = usage_data(agent, provider, model, input_tokens, output_tokens, cost_usd)
        return used([self._timeline.add(KIND, **data)])[0]

    def list(self, days: Days | None = None, tz: tzinfo | None = UTC) -> builtins.list[Used]:
        """The uses in order; `days` limits to days of the time zone `tz`, None: this machine's."""
        return used(self._timeline.read(days, tz=tz))

    def totals(
        self, by: By = "model", days: Days | None = None, tz: tzinfo | None = UTC
    ) -> builtins.list[UsageTotal]:
        """The sums by `agent`, `provider`, `model` or `day` of the time zone `tz`. Raises UsageError."""
        if by not in BYS:
            raise UsageError(f"{by[:40]!r} is nothing to add up by", hint=f"It is one of {', '.join(BYS)}.")
        return totals(self.list(days, tz), by, tz)

    def csv(self, days: Days | None = None, tz: tzinfo | None = UTC) -> str:
        """A row for each use, for spreadsheets."""
        return as_csv(self.list(days, tz))

    def budgets(self) -> builtins.list[Budget]:
        """What was spent today and this month (UTC), beside the limits in the settings."""
        today, limits = self._replica.world.utc_today().isoformat(), settings().usage
        month = self.list((f"{today[:7]}-01", today))
        spent = sum(one.cost for one in month if one.at[:10] == today)
        return [
            Budget("day", spent, round(limits.day_usd * 1_000_000)),
            Budget("month", sum(one.cost for one in month), round(limits.month_usd * 1_000_000)),
        ]
