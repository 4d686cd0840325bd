"""Resend to a provider what it found damaged, since most devices never recheck old uploads.

Only blocks intact on this device are sent. No tree is walked.
"""

from __future__ import annotations

from ipfsmem.content.cid import CID
from ipfsmem.device.bulk import read_blocks
from ipfsmem.errors import ProviderError
from ipfsmem.provider.contract import MAX_BATCH, Block, Provider, Repair
from ipfsmem.sync.context import SyncContext
from ipfsmem.sync.names import pin_name

#: Number of blocks sent together.
_AT_ONCE = 1_000


async def resend_damaged(run: SyncContext, provider: Provider, root: CID) -> None:
    """Send what a provider reports as lost, as far as local. `root` heads the CAR.

    Providers that cannot notice are not called. Raises ProviderError when sending fails.
    """
    if not isinstance(provider, Repair) or not provider.capabilities.partial_car:
        return
    try:
        lacking = (await provider.missing_blocks())[:MAX_BATCH]
    except ProviderError as error:
        said = f"the list of damaged parts at {provider.name} could not be read"
        run.notices.failed(said, error, provider=provider.name)
        return
    sent = 0
    for start in range(0, len(lacking), _AT_ONCE):
        part = lacking[start : start + _AT_ONCE]
        here = read_blocks(run.replica.db, [cid.digest for cid in part])
        blocks: list[Block] = [(cid, here[cid.digest]) for cid in part if cid.digest in here]
        if blocks:
            await provider.put_car(root, blocks, name=pin_name(run.anchor))
            sent += len(blocks)
            run.sending.count(len(blocks), sum(len(data) for _, data in blocks))
    if sent:
        run.notices.say(
            "mended",
            f"{sent} parts that were damaged at {provider.name} were sent again",
            provider=provider.name,
        )
