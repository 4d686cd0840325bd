"""Name records are renewed in time by any running device, for every name, at providers that forget them."""

from __future__ import annotations

import asyncio

import pytest

from ipfsmem.content.cid import ipns_name
from ipfsmem.errors import ProviderUnavailable
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Capabilities
from ipfsmem.published.ipns_record import IpnsRecord, make_record, parse_record
from ipfsmem.sync.names import DEVICE_LIFE_MS, half_spent, must_put, oldest_put
from ipfsmem.testing import MockClock, SeededRandom, SimCloud, SimProvider
from tests.support.device_lab import ROOT, Lab, kinds

HOUR = 3_600_000
DAY = 24 * 3600  # seconds, as clocks are advanced


def puts(provider: SimProvider, name: str) -> int:
    """Return how many times a record of this name was sent to the provider."""
    return sum(e.call == "put_name" and e.sent.startswith(name.encode()) for e in provider.wire)


def own(memory: Memory) -> str:
    return ipns_name(memory.replica.device.sign_public)


ANCHOR = ipns_name(ROOT.head_public)


def router(clock: MockClock, name: str = "router") -> SimProvider:
    """A provider that stores only names, for a limited time: delegated routing."""
    only_names = Capabilities(put=False, names=True, durable=False)
    return SimProvider(SimCloud(), name=name, capabilities=only_names, clock=clock, random=SeededRandom(name))


@pytest.mark.parametrize(
    ("said", "until", "same", "stays", "last", "put"),
    [
        ("another record is there", 1000 * HOUR, False, True, 99 * HOUR, True),
        ("another record is there, put just now", 1000 * HOUR, False, True, 100 * HOUR, True),
        ("twelve hours ago", 1000 * HOUR, True, True, 88 * HOUR, True),
        ("almost twelve hours ago", 1000 * HOUR, True, True, 88 * HOUR + 1, False),
        ("just now", 1000 * HOUR, True, False, 100 * HOUR, False),
        ("never, where it stays", 1000 * HOUR, True, True, None, False),
        ("never, where it is forgotten", 1000 * HOUR, True, False, None, True),
        ("in the future: the clock was set back", 1000 * HOUR, True, True, 101 * HOUR, True),
        ("it has run out", 100 * HOUR, False, False, None, False),
        ("it runs out in a moment", 100 * HOUR + 1, False, False, None, True),
    ],
)
def test_renewal_decision_follows_the_table_of_cases(
    said: str, until: int, same: bool, stays: bool, last: int | None, put: bool
) -> None:
    assert must_put(100 * HOUR, until=until, same=same, stays=stays, last=last) is put, said


def test_record_is_renewed_after_half_of_its_life() -> None:
    def record(left_ms: int) -> IpnsRecord:
        return parse_record(make_record(b"\x01" * 32, f"/ipns/{ANCHOR}", 1, (HOUR + left_ms) * 1_000_000))

    assert not half_spent(record(500), HOUR, 1000)
    assert half_spent(record(499), HOUR, 1000)
    assert half_spent(record(-1), HOUR, 1000)


def test_record_is_renewed_every_twelve_hours_and_not_before(lab: Lab) -> None:
    a = lab.create("a")
    a.lock()
    provider = lab.provider("a")
    lab.sync(a)
    first = {name: puts(provider, name) for name in (own(a), ANCHOR)}
    assert first == {own(a): 1, ANCHOR: 1}
    lab.clock.advance(DAY / 2 - 10)
    lab.sync(a)
    assert {name: puts(provider, name) for name in first} == first
    records = {name: list(found) for name, found in lab.cloud.names.items()}
    lab.clock.advance(10)
    lab.sync(a)
    assert {name: puts(provider, name) for name in first} == {own(a): 2, ANCHOR: 2}
    assert lab.cloud.names == records  # the very same records: nothing was signed for it
    lab.sync(a)
    assert {name: puts(provider, name) for name in first} == {own(a): 2, ANCHOR: 2}


def test_times_of_record_puts_survive_the_process(lab: Lab) -> None:
    a = lab.create("a")
    lab.sync(a)
    a.close()
    lab.clock.advance(DAY / 4)
    again = lab.open("a")
    lab.sync(again)
    assert puts(lab.provider("a"), own(again)) == 1
    lab.clock.advance(DAY / 4)
    lab.sync(again)
    assert puts(lab.provider("a"), own(again)) == 2


def test_record_is_renewed_at_a_channel_that_was_down(lab: Lab) -> None:
    a = lab.create("a")
    one, two = lab.provider("a"), router(lab.clock)
    a.providers.use([one, two])
    lab.sync(a)
    assert puts(two, own(a)) == 1
    lab.clock.advance(DAY / 2)
    two.faults.offline = True
    assert "channel-down" in kinds(lab.sync(a))
    two.faults.offline = False
    assert "channel-down" not in kinds(lab.sync(a))
    assert (puts(one, own(a)), puts(two, own(a))) == (2, 2)
    lab.sync(a)
    assert (puts(one, own(a)), puts(two, own(a))) == (2, 2)


def test_failed_record_renewal_is_no_error_while_the_record_is_shown(lab: Lab) -> None:
    """As at a read-only router or with a full quota."""
    a = lab.create("a")
    lab.sync(a)
    provider = lab.provider("a")
    lab.clock.advance(DAY / 2)
    broken = provider.put_name
    asked: list[str] = []

    async def put_name(name: str, record: bytes) -> None:
        asked.append(name)
        raise ProviderUnavailable("not now")

    provider.put_name = put_name  # type: ignore[method-assign]
    report = lab.sync(a)
    assert "channel-down" in kinds(report) and sorted(asked) == sorted([ANCHOR, own(a)])
    provider.put_name = broken  # type: ignore[method-assign]
    lab.sync(a)
    assert (puts(provider, own(a)), puts(provider, ANCHOR)) == (2, 2)


def test_records_lost_by_a_network_are_restored_for_every_device(lab: Lab) -> None:
    a, b, c = lab.three()
    network = router(lab.clock)
    for memory, name in ((a, "a"), (b, "b"), (c, "c")):
        memory.providers.use([lab.provider(name), network])
        lab.sync(memory)
    everybody = {ANCHOR, own(a), own(b), own(c)}
    assert set(network.cloud.names) == everybody
    newest = {name: found[-1] for name, found in network.cloud.names.items()}
    network.cloud.names.clear()  # two days later; a and c were off all the time
    lab.clock.advance(2 * DAY)
    lab.sync(b)
    assert {name: found[-1] for name, found in network.cloud.names.items()} == newest


def test_record_first_seen_at_a_forgetful_channel_is_renewed_at_once(lab: Lab) -> None:
    """Its age there is unknown."""
    a, b, _ = lab.three()
    network = router(lab.clock)
    a.providers.use([lab.provider("a"), network])
    lab.sync(a)
    before = puts(network, own(a))
    b.providers.use([lab.provider("b"), network])
    lab.sync(b)
    assert puts(network, own(a)) == before + 1
    lab.sync(b)
    assert puts(network, own(a)) == before + 1


def test_unneeded_renewals_for_other_devices_cause_no_requests(lab: Lab) -> None:
    a, b, c = lab.three()
    provider = lab.provider("b")
    before = len([call for call in provider.calls if call == "put_name"])
    for _ in range(3):
        for memory in (a, b, c):
            lab.sync(memory)
    assert len([call for call in provider.calls if call == "put_name"]) == before


def test_failed_renewal_for_another_device_is_not_an_error(lab: Lab) -> None:
    a, b, c = lab.three()
    network = router(lab.clock)
    b.providers.use([lab.provider("b"), network])
    lab.sync(b)
    lab.clock.advance(DAY / 2)
    real = network.put_name
    others = {own(a), own(c)}
    asked: list[str] = []

    async def put_name(name: str, record: bytes) -> None:
        if name in others:
            asked.append(name)
            raise ProviderUnavailable("not now")
        await real(name, record)

    network.put_name = put_name  # type: ignore[method-assign]
    lab.sync(b)
    assert len(asked) == 1  # the provider is not called again in this sync


def test_device_record_is_renewed_after_half_its_lifetime(lab: Lab) -> None:
    a = lab.create("a")
    lab.sync(a)
    a.lock()
    known = parse_record(lab.cloud.names[own(a)][-1])
    lab.clock.advance(DEVICE_LIFE_MS / 2000 - 100)
    lab.sync(a)
    assert parse_record(lab.cloud.names[own(a)][-1]) == known
    lab.clock.advance(200)
    report = lab.sync(a)
    renewed = parse_record(lab.cloud.names[own(a)][-1])
    assert not report.published
    assert (renewed.value, renewed.sequence) == (known.value, known.sequence + 1)
    assert renewed.validity == lab.clock.ms * 1_000_000 + DEVICE_LIFE_MS * 1_000_000
    anchor = parse_record(lab.cloud.names[ANCHOR][-1])
    assert anchor.sequence == parse_record(lab.cloud.names[ANCHOR][0]).sequence  # ten years: far from half


def test_unlocked_root_renews_an_anchor_in_the_second_half_of_its_life(lab: Lab) -> None:
    a = lab.create("a")
    lab.sync(a)
    known = parse_record(lab.cloud.names[ANCHOR][-1])
    lab.clock.advance(5 * 365 * DAY + DAY)
    a.lock()
    lab.sync(a)
    assert parse_record(lab.cloud.names[ANCHOR][-1]) == known  # devices cannot sign it
    a.unlock(ROOT)
    lab.sync(a)
    renewed = parse_record(lab.cloud.names[ANCHOR][-1])
    assert (renewed.value, renewed.sequence) == (known.value, known.sequence + 1)


def test_oldest_put_is_the_earliest_of_the_given_channels(lab: Lab) -> None:
    a = lab.create("a")
    one, two = lab.provider("a"), router(lab.clock)
    assert oldest_put(a.replica, [one]) is None
    lab.sync(a)
    began = lab.clock.ms
    lab.clock.advance(3600)
    a.providers.use([one, two])
    lab.sync(a)
    assert oldest_put(a.replica, [one, two]) == began
    assert oldest_put(a.replica, [two]) == lab.clock.ms
    assert oldest_put(a.replica, [SimProvider(name="unknown")]) is None


def test_failed_publish_does_not_stop_record_renewal(lab: Lab) -> None:
    """A full account, or a text that looks like a secret, may stop publishing for days."""
    a, b, _ = lab.three()
    network = router(lab.clock)
    a.providers.use([lab.provider("a"), network])
    lab.sync(a)
    newest = {name: found[-1] for name, found in network.cloud.names.items()}
    a.write("tone", "too much")
    lab.provider("a").faults.reset_after = 0
    lab.clock.advance(DAY)
    network.cloud.names.clear()
    with pytest.raises(ProviderUnavailable):
        lab.sync(a)
    assert {name: found[-1] for name, found in network.cloud.names.items()} == newest
    assert own(a) in newest and own(b) in newest


def test_records_of_a_revoked_device_are_not_renewed(lab: Lab) -> None:
    a, b, c = lab.three()
    a.unlock(ROOT)
    provider = lab.provider("a")
    asyncio.run(a.members.revoke(c.device))
    a.lock()
    before = puts(provider, own(c)), puts(provider, own(b))
    lab.clock.advance(DAY / 2)
    lab.sync(a)
    assert (puts(provider, own(c)), puts(provider, own(b))) == (before[0], before[1] + 1)
    assert oldest_put(a.replica, [provider]) == lab.clock.ms  # its date is not the relevant one


def test_lost_names_are_restored_by_the_next_sync(lab: Lab) -> None:
    a = lab.create("a")
    lab.sync(a)
    lab.cloud.names.clear()
    asyncio.run(a.sync())
    assert set(lab.cloud.names) == {own(a), ANCHOR}


def test_status_warns_while_only_networks_store_the_names(lab: Lab) -> None:
    """Format 7: with the date, if no channel stores names permanently."""
    a = lab.create("a")
    stores = SimProvider(SimCloud(), capabilities=Capabilities(blocks=True, pin=True), clock=lab.clock)
    network = router(lab.clock)
    a.providers.use([stores, network])
    (notice,) = a.status().notices
    assert "48 hours" in notice and "not published yet" in notice
    lab.sync(a)
    (notice,) = a.status().notices
    assert "48 hours" in notice and "2026-01-01 00:00 UTC" in notice and a.status().names_put == lab.clock.ms
    lab.clock.advance(DAY)
    (notice,) = a.status().notices
    assert "2026-01-01 00:00 UTC" in notice
    lab.sync(a)
    (notice,) = a.status().notices
    assert "2026-01-02 00:00 UTC" in notice
    for stays in (Capabilities(names=True), Capabilities(list=True), Capabilities(put=False, names=True)):
        a.providers.use([stores, network, SimProvider(name="stays", capabilities=stays)])
        assert a.status().notices == []
    a.providers.use([stores, network, SimProvider(capabilities=Capabilities(list=True, durable=False))])
    assert len(a.status().notices) == 1
    a.providers.use([stores])
    (notice,) = a.status().notices
    assert "cannot find" in notice and "48" not in notice
    a.providers.use([])
    assert a.status().notices == []
