"""Find the vault of a root key on a new device: by names, by pin lists, by a root written on paper (format sections
2.3 and 7).

The caller names the kind, sealed or plain; a vault of the other kind is reported, never used. Nothing is created,
joined or signed. "No vault found" always includes the reasons to doubt it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

from ipfsmem import config as configuration
from ipfsmem.config import VaultConfig
from ipfsmem.content.cid import CID, ipns_name, public_of_ipns_name
from ipfsmem.content.fetch import drive_async
from ipfsmem.content.reader import Reader
from ipfsmem.device.replica import Replica
from ipfsmem.errors import (
    DamagedError,
    FormatError,
    IpfsmemError,
    NotFoundError,
    NoVaultError,
    OpenError,
    OtherKindError,
    ProviderError,
    SealError,
    WrongWalletError,
)
from ipfsmem.mode import vault_mode
from ipfsmem.provider.choice import ProviderChoice, each_of
from ipfsmem.provider.contract import Provider, Unreading
from ipfsmem.provider.opening import ProviderPool
from ipfsmem.published.root_reader import RootFiles, read_root
from ipfsmem.published.root_verification import open_root
from ipfsmem.ring.keyring import Keyring, parse_keyring
from ipfsmem.ring.statements import Member, member_id
from ipfsmem.sync.anchor_pins import MAX_HOPS, MAX_PINS, PINS_AT_ONCE, learn_records
from ipfsmem.sync.company import Company
from ipfsmem.sync.fetch import Fetcher
from ipfsmem.sync.names import Names, pin_name, target
from ipfsmem.sync.pin_lists import readable_pins
from ipfsmem.sync.progress import no_progress
from ipfsmem.sync.report import Notices
from ipfsmem.vault.creating import scratch_replica
from ipfsmem.vault.home import Home
from ipfsmem.vault.owner import Unlock, revoked_owner_error
from ipfsmem.wallet.root_keys import RootKeys


async def find_vault(
    root: RootKeys, providers: Sequence[Provider], replica: Replica, *, sealed: bool
) -> VaultConfig:
    """Return what to pin of a root key's vault: its own, or the one a recovery phrase or second wallet was enrolled
    in.

    `sealed`: the kind requested. Raises NoVaultError if nobody knows the key, OtherKindError when only a vault of the
    other kind exists, ProviderError when its ring is unavailable, WrongWalletError.
    """
    return await _VaultSearch(root, providers, replica, sealed).find()


async def require_vault(unlock: Unlock, provider: ProviderChoice, home: Home, *, sealed: bool) -> VaultConfig:
    """Look for a wallet's vault, and bring nothing here. Raises what `find_vault` raises, ConfigError."""
    pool = ProviderPool(home.path(configuration.settings()))
    try:
        with contextlib.closing(scratch_replica(home.environment)) as scratch:
            root = await asyncio.to_thread(unlock.root, twice=False)
            company = Company(scratch, pool.open_all(each_of(provider)), home.progress or no_progress)
            async with company.detecting_unresponsive():
                return await find_vault(root, company.members, scratch, sealed=sealed)
    finally:
        await pool.aclose()


async def vault_of_root(
    root: RootKeys, newest: CID, providers: Sequence[Provider], replica: Replica, *, sealed: bool
) -> VaultConfig:
    """Return what to pin of the vault of `newest`, a version the user wrote down, when no name or list leads to one.

    The user vouches for the vault: a ring with a key in it proves nothing. Raises NotFoundError,
    ProviderError, FormatError when there is no such root, OtherKindError, WrongWalletError when its ring does
    not have this key.
    """
    fetcher = Fetcher(replica.db, providers)
    files = await drive_async(read_root(Reader(), newest), fetcher.get)
    keyring = parse_keyring(files.keyring)
    if keyring.plain is sealed:
        raise other_kind(keyring, sealed, f"in version {newest}")
    main = _main_anchor(root, keyring)
    if main is None:
        raise FormatError(f"version {newest} does not name the start version of this vault")
    return _pinned(keyring, main)


async def check_reachable(providers: Sequence[Provider]) -> None:
    """Make a cheap request to each provider, so that a mistyped address or an outage is found before anything is
    created.

    Raises ProviderError. Upload-only providers are skipped.
    """
    nobody = bytes(32)
    for provider in providers:
        can = provider.capabilities
        if can.list:
            await provider.pins(pin_name(nobody))
        elif can.names:
            await provider.get_name(ipns_name(_NOBODY))
        elif can.has:
            await provider.has([CID(1, 0x55, b"\x12\x20" + nobody)])


def other_kind(keyring: Keyring, sealed: bool, where: str) -> OtherKindError:
    """Return the error that refuses a vault of the other kind; it names both kinds."""
    return OtherKindError(
        f"the vault {where} has mode {vault_mode(sealed=not keyring.plain)} (vault {keyring.vault.hex()}), "
        f"and mode {vault_mode(sealed=sealed)} was requested",
        hint=_WHICH[sealed],
    )


_WHICH: Final = {
    True: "Nothing was created or signed. If you published this vault unencrypted yourself: --mode ipfs (in Python: mode=). If yours was encrypted, somebody replaced it: do not write into this one.",
    False: "Nothing was created or signed. To restore the encrypted one: --mode encrypted-ipfs (in Python: mode=).",
}
#: Maximum number of unreadable parts of one provider that an error names.
_GAPS_SHOWN: Final = 3
#: A public key whose seed is 32 zero bytes: nobody publishes under its name.
_NOBODY: Final = bytes.fromhex("3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29")


class _VaultSearch:
    """One search: vaults of the other kind, and reasons to doubt that there is no vault."""

    def __init__(self, root: RootKeys, providers: Sequence[Provider], replica: Replica, sealed: bool) -> None:
        self._root = root
        self._providers = providers
        self._sealed = sealed
        self._where = " or ".join(provider.name for provider in providers)
        self._notices = Notices()
        self._names = Names(replica, providers, self._notices)
        self._fetcher = Fetcher(replica.db, providers)
        self._anchor = ipns_name(root.head_public)
        #: The last name that this key's own anchor was seen to lead on to.
        self._last = self._anchor
        self._other: Keyring | None = None
        self._doubts: list[str] = []

    async def find(self) -> VaultConfig:
        record = await self._names.read(self._anchor)
        config, lost = None, None
        try:
            config = await self._find_by_names() if record is not None else None
        except ProviderError as error:
            lost = error  # an old record may lead to an unpinned root, and a list may still show a later one
        if config is None:
            config = await self._find_by_pin_lists()
        if config is None and lost is not None:
            config = await self._find_by_lists_of_main_anchor()
            if config is None:
                raise lost
        if config is None and record is None:
            config = await self._find_by_names()
        if config is not None:
            return config
        if self._other is not None:
            raise other_kind(self._other, self._sealed, f"at {self._where}")
        self._doubts += [notice.text for notice in self._notices.said]
        self._doubts += [*_gaps(self._providers), *_why_not_certain(self._providers)]
        doubt = "; ".join(self._doubts)
        raise NoVaultError(
            f"no vault for this wallet or recovery phrase in mode {vault_mode(sealed=self._sealed)} was found at {self._where}"
            + (f", but the search was incomplete: {doubt}" if doubt else ""),
            doubt=doubt,
        )

    async def _find_by_names(self) -> VaultConfig | None:
        """Find the vault by the record of the key's own anchor, and the names it leads on to."""
        name = self._last = self._anchor
        record = self._names.known(name)
        for _ in range(MAX_HOPS):
            if record is None:
                break
            leads = target(record)
            if isinstance(leads, CID):
                keyring = await self._read(leads)
                if self._is_other(keyring):
                    return None
                try:
                    main = _main_anchor(self._root, keyring) or public_of_ipns_name(name)
                except FormatError as error:
                    raise self._unreadable(error) from None
                return _pinned(keyring, main)
            name = self._last = leads
            record = await self._names.read(leads)
        if name != self._anchor:
            self._doubts.append(f"the name of this wallet points to {name}, which no provider knows")
        return None

    async def _read(self, root: CID) -> Keyring:
        try:
            files = await drive_async(read_root(Reader(), root), self._fetcher.get)
            return parse_keyring(files.keyring)
        except (NotFoundError, FormatError, SealError) as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: IpfsmemError) -> ProviderError:
        """Return an error that a vault exists: making an empty one now would move the anchor away from it."""
        wrong = "; ".join(self._fetcher.refused.values())
        return ProviderError(
            f"{self._where} lists a vault for this wallet, but its start version cannot be read there: {error}"
            + (f" ({wrong})" if wrong else ""),
            hint="Name another provider that has this vault, or first sync a device that has it.",
        )

    def _is_other(self, keyring: Keyring) -> bool:
        if keyring.plain is not self._sealed:
            return False
        self._other = self._other or keyring
        return True

    async def _find_by_pin_lists(self) -> VaultConfig | None:
        """Find the vault by pins under this key's own pin name, where no names are kept (Pinata, Filebase).

        A ring whose first root is this key is proof, since the vault's tag is the hash of that key. Other
        keys need records that they signed, which are added to `names`; a ring that merely names the key
        proves nothing, since anyone can make one. The result is verified like any head when joined. Raises
        ProviderError when nothing was found and a list was unreadable.
        """
        failures: list[ProviderError] = []
        for provider in self._providers:
            if not provider.capabilities.list:
                continue
            pins, unread = await readable_pins(provider, pin_name(self._root.head_public))
            if unread is not None:
                failures.append(unread)
            roots = list(dict.fromkeys(pin.cid for pin in pins))[:MAX_PINS]
            refused: dict[CID, IpfsmemError] = {}
            start, end = 0, 1  # the newest usually suffices
            while start < len(roots):
                keyrings, failed = await self._rings(roots[start:end])
                if (own := self._own(keyrings)) is not None:
                    return own
                down = next((error for error in failed.values() if isinstance(error, ProviderError)), None)
                if down is not None:
                    failures.append(
                        down
                    )  # another provider may have an older root, which names the vault as well
                    break
                refused |= failed
                readable = [pin for pin in pins if pin.cid in keyrings]
                try:
                    await learn_records(self._names, self._fetcher, readable, self._root.head_public)
                except ProviderError as error:
                    failures.append(error)
                    break
                start, end = end, end + PINS_AT_ONCE
            # A ring identifies its vault even when the head next to it is lost.
            keyrings, _ = await self._rings([*refused][:PINS_AT_ONCE], alone=True)
            if (own := self._own(keyrings)) is not None:
                return own
            if roots:
                why = next(iter(refused.values()), "they belong to others")
                self._doubts.append(
                    f"{provider.name} lists {len(roots)} under the name of this wallet that could not be read as its vault: {why}"
                )
        if failures and self._names.known(self._anchor) is None:
            raise failures[0]  # the vault may exist: prevent the creation of an empty one
        return None

    def _own(self, keyrings: dict[CID, Keyring]) -> VaultConfig | None:
        """Return the vault of a ring whose first root is this key."""
        for keyring in keyrings.values():
            if keyring.roots[0] == self._root.admin_public and not self._is_other(keyring):
                return _pinned(keyring, self._root.head_public)
        return None

    async def _find_by_lists_of_main_anchor(self) -> VaultConfig | None:
        """Find the vault by the pin lists of the anchor that this key's own leads to, when the ring there is
        unavailable.

        Proof is a ring with that anchor, in which this very key signed that it belongs to the vault.
        """
        main = public_of_ipns_name(self._last)
        revoked: WrongWalletError | None = None
        unverified: IpfsmemError | None = None
        for provider in self._providers:
            if not provider.capabilities.list:
                continue
            pins, _ = await readable_pins(provider, pin_name(main))  # another provider's may show it
            roots = list(dict.fromkeys(pin.cid for pin in pins))
            keyrings, _ = await self._rings(roots[:PINS_AT_ONCE], alone=True)
            for root, keyring in keyrings.items():
                if not self._has_own_statement(keyring) or self._is_other(keyring):
                    continue
                try:
                    if _main_anchor(self._root, keyring) == main:
                        return _pinned(keyring, main)
                except (FormatError, SealError) as error:  # another root of the list may open
                    has_commit, verified = await self._commit(root, keyring)
                    if verified and isinstance(error, WrongWalletError):
                        revoked = revoked or error
                    elif has_commit:
                        unverified = unverified or error
        if revoked is not None:
            raise revoked
        if unverified is not None:
            raise DamagedError(
                f"{self._where} lists versions of this vault, but none can be verified with this key: {unverified}",
                hint="Name another provider that has this vault, or first sync a device that has it.",
            )
        return None

    async def _commit(self, root: CID, keyring: Keyring) -> tuple[bool, bool]:
        """Tell whether a root has a commit, and whether it verifies with the root's own ring. Both False when
        unavailable now."""
        try:
            files = await drive_async(read_root(Reader(), root), self._fetcher.get)
        except ProviderError:
            return False, False
        except (NotFoundError, FormatError):
            return True, False  # a root with only a ring needs no further block
        if files.head is None:
            return False, False
        try:
            open_root(files, keyring.vault, None, [self._root.box_secret])
        except IpfsmemError:
            return True, False
        return True, True

    def _has_own_statement(self, keyring: Keyring) -> bool:
        """Tell whether a statement of the ring says that this key and its anchor belong to the vault."""
        mine = (self._root.admin_public.hex(), self._root.head_public.hex())
        members = (st.body for st in keyring.open if isinstance(st.body, Member))
        return any((body.sign, body.anchor) == mine for body in members)

    async def _rings(
        self, roots: list[CID], *, alone: bool = False
    ) -> tuple[dict[CID, Keyring], dict[CID, IpfsmemError]]:
        """Return the rings found in `roots`, and the errors of unreadable ones. `alone`: ignore the heads."""
        keyrings: dict[CID, Keyring] = {}

        def use(root: CID, files: RootFiles) -> IpfsmemError | None:
            try:
                keyrings[root] = parse_keyring(files.keyring)
            except IpfsmemError as error:
                return error
            return None

        failed = await self._fetcher.side_by_side(
            {root: read_root(Reader(), root, ring_alone=alone) for root in roots}, use
        )
        return keyrings, failed


def _gaps(providers: Sequence[Provider]) -> list[str]:
    """Return the parts of lists and the records that these providers have and could not read."""
    texts = []
    for provider in providers:
        gaps = provider.unread() if isinstance(provider, Unreading) else []
        texts += [f"{provider.name} holds {gap}, which cannot be read" for gap in gaps[:_GAPS_SHOWN]]
        if len(gaps) > _GAPS_SHOWN:
            texts.append(f"{provider.name} holds {len(gaps) - _GAPS_SHOWN:,} more that cannot be read")
    return texts


def _why_not_certain(providers: Sequence[Provider]) -> list[str]:
    """Return why a search of these providers that found no vault proves nothing."""
    telling = [p for p in providers if _tells(p)]
    reasons = [
        f"{provider.name} does not list its content"
        for provider in providers
        if (provider.capabilities.put or provider.capabilities.pin) and provider not in telling
    ]
    if not telling and not reasons:
        reasons.append("none of these providers lists all published versions")
    return reasons


def _tells(provider: Provider) -> bool:
    can = provider.capabilities
    return (can.names or can.list) and can.durable


def _main_anchor(root: RootKeys, keyring: Keyring) -> bytes | None:
    """Return the anchor of the vault's first root, from whichever anchor led here: its pin name is shared by all
    roots.

    Raises WrongWalletError if the ring does not have this key as a root or an admin.
    """
    me = member_id(root.admin_public)
    try:
        view = keyring.unlock(root.box_secret).unbounded_ring.view
    except OpenError:
        # Revokes are sealed, but every epoch lists the removed ids in the clear.
        if any(me in epoch.not_ for epoch in keyring.epochs):
            raise revoked_owner_error(root) from None
        raise WrongWalletError("the vault that this wallet points to does not open with it") from None
    if me in view.revoked:
        raise revoked_owner_error(root)
    if not view.may_administer(me) or view.sign_key(me) != root.admin_public:
        raise WrongWalletError("the vault that this wallet points to does not list it as an owner")
    first = view.members.get(member_id(keyring.roots[0]))
    return first.anchor if first is not None else None


def _pinned(keyring: Keyring, anchor: bytes) -> VaultConfig:
    return VaultConfig(
        tag=keyring.vault.hex(),
        name="",
        key_number=0,
        address=None,
        admin=keyring.roots[0].hex(),
        anchor=anchor.hex(),
    )
