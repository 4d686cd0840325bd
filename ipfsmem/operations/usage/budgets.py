"""The operation `usage.budgets`: spending of today and this month, and its limits."""

from __future__ import annotations

import msgspec

from ipfsmem.operation import Items, View, operation
from ipfsmem.operations.usage.uses import uses_of


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """Spending in millionths of a US dollar, of this UTC `day` or `month`, and its limit in the settings; 0 for no limit."""

    period: str
    spent: int
    limit: int

    @property
    def over(self) -> bool:
        """Whether more was spent than the limit."""
        return 0 < self.limit < self.spent


class Budgets(Items[Budget], frozen=True, kw_only=True):
    """Spending of today and this month. It is a sequence of its `budgets`."""

    budgets: tuple[Budget, ...]


@operation(
    summary="Show spending and limits of today and this month",
    right="read",
    about="scope",
    command="usage budget",
    http="GET /v1/usage/budgets",
)
def budgets(view: View) -> Budgets:
    """Show the cost of today and this month (UTC) and the limits in the settings. A limit does not stop anything."""
    from ipfsmem.config import settings

    today, limits = view.opened.replica.environment.utc_today().isoformat(), settings().usage
    month = uses_of(view, f"{today[:7]}-01", today, None)
    spent = sum(one.cost for one in month if one.at[:10] == today)
    return Budgets(
        budgets=(
            Budget(period="day", spent=spent, limit=round(limits.day_usd * 1_000_000)),
            Budget(
                period="month",
                spent=sum(one.cost for one in month),
                limit=round(limits.month_usd * 1_000_000),
            ),
        )
    )
