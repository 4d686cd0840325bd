"""Agent keys: created, opened in a container, renewed, expired and revoked. Numbers are those of the design's traces."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from ipfsmem.bundle.program_events import AGENT, agent_data
from ipfsmem.causal.clock import hlc
from ipfsmem.device.events import Timeline
from ipfsmem.device.wall_clock import now_ms
from ipfsmem.errors import (
    ConfigError,
    FormatError,
    IpfsmemError,
    MembershipError,
    NotFoundError,
    ProviderError,
    ProviderUnavailable,
    UsageError,
)
from ipfsmem.memory import Memory
from ipfsmem.ring import operations
from ipfsmem.ring.operations import enrollee_of, new_person
from ipfsmem.seal.primitives import Signer25519, x25519_public
from ipfsmem.sync.agent_cards import agents_of, believed_cards, enrol_agent, write_card
from ipfsmem.wallet.agent_key import AgentKey, KeyProvider, parse_key, render_key
from ipfsmem.wallet.recovery_words import from_words
from ipfsmem.wallet.root_keys import RootKeys
from tests.support.agent_key_lab import DAY, WALLET, KeyLab
from tests.unit.wallet.make_agent_key_vectors import file_rows


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[KeyLab]:
    lab = KeyLab(tmp_path)
    yield lab
    lab.owner.close()


def changed(text: str, **fields: object) -> str:
    """The string of a key with other fields."""
    key = parse_key(text)
    values = {name: getattr(key, name) for name in ("seed", "root", "anchor", "providers", "least")} | fields
    return render_key(AgentKey(**values))


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def test_key_opens_everything_to_read(lab: KeyLab, monkeypatch: pytest.MonkeyPatch) -> None:
    new = lab.new()
    assert (new.problem, new.role, new.expires) == ("", "reader", lab.clock.now + 30 * DAY)
    monkeypatch.setenv("IPFSMEM_KEY", new.key)
    with lab.load() as memory:
        assert memory.read("tone").body == "Say what is wrong first."
        assert [one.key for one in memory.scope("acme").list()] == ["plan"]
        assert memory.recall("feedback").hits[0].key == "tone"
        assert "tone" in memory.context().text
        assert memory.read("tone").own
        state = memory.status()
        assert state.memories == 2 and not state.unpublished and state.folder is None
        assert any("agent key web, valid until" in one for one in state.notices)


def test_key_is_returned_although_its_publish_fails(lab: KeyLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its member is in the ring: without the string nobody could use what a later sync publishes."""

    async def unplugged(*_args: object, **_more: object) -> None:
        raise ProviderUnavailable("the stick was unplugged")

    with monkeypatch.context() as patch:
        patch.setattr("ipfsmem.operations.members.publish_statement", unplugged)
        new = lab.new()
    assert new.problem == "it is not published yet: the stick was unplugged"
    lab.sync()
    monkeypatch.setenv("IPFSMEM_KEY", new.key)
    with lab.load() as memory:
        assert memory.read("tone").body == "Say what is wrong first."


def test_key_is_asynchronously_loaded_and_synced(lab: KeyLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPFSMEM_KEY", lab.new().key)

    async def play() -> list[str]:
        async with await Memory.aload() as memory:
            return [one.key for one in memory.list()]

    lab.clock.now = now_ms()
    asyncio.run(lab.owner.agents.renew("web"))
    assert asyncio.run(play()) == ["tone"]
    with lab.load() as memory:
        lab.owner.write("later", "A later text.")
        lab.sync()
        assert asyncio.run(memory.sync()).heads_joined == 1
        assert memory.read("later").body == "A later text."


def test_container_writes_nothing_anywhere(lab: KeyLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPFSMEM_KEY", lab.new().key)
    before = files_in(lab.base)
    with lab.load() as memory:
        assert memory.replica.folder is None
        for write in (
            lambda: memory.write("tone", "Another text."),
            lambda: memory.forget("tone"),
            lambda: memory.note("decision"),
            lambda: memory.scope("new").write("x", "y"),
            lambda: memory.undo(),
        ):
            with pytest.raises(IpfsmemError) as caught:
                write()
            assert isinstance(caught.value, UsageError | NotFoundError)
        asyncio.run(memory.sync())
        memory.recall("feedback")
        memory.context()
    assert files_in(lab.base) == before


def test_agent_never_enters_counters_or_publishes(lab: KeyLab, monkeypatch: pytest.MonkeyPatch) -> None:
    new = lab.new()
    monkeypatch.setenv("IPFSMEM_KEY", new.key)
    for _ in range(3):
        with lab.load() as memory:
            asyncio.run(memory.sync())
    lab.sync()
    assert new.id not in lab.owner.replica.store.frame.ctx
    ring = lab.owner.replica.ring
    assert ring is not None and not ring.view.may_write(new.id)
    assert [one.id for one in ring.view.members.values() if one.kind == "agent"] == [new.id]


def test_commit_of_an_agent_is_refused(lab: KeyLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed program that publishes with a reader's key: nobody joins its head."""
    new = lab.new()
    monkeypatch.setenv("IPFSMEM_KEY", new.key)
    with lab.load() as memory:
        memory.replica.read_only, memory.replica.as_agent = "", False
        memory.write("forged", "By the agent.")
        report = asyncio.run(memory.sync())
        assert report.blocked == "not-a-writer"
    lab.sync()
    assert lab.owner.read("forged") is None


# 15, 16, 18


def test_revoked_key_opens_nothing(lab: KeyLab, monkeypatch: pytest.MonkeyPatch) -> None:
    new = lab.new()
    monkeypatch.setenv("IPFSMEM_KEY", new.key)
    with lab.load() as open_before:
        report = asyncio.run(lab.owner.agents.revoke("web"))
        assert any(one.kind == "revoked" for one in report.notices)
        lab.owner.write("secret", "After the revoke.")
        lab.sync()
        with pytest.raises(MembershipError, match="this agent key was revoked"):
            lab.load()
        with pytest.raises(MembershipError, match="revoked"):
            asyncio.run(open_before.sync())
        assert [one.key for one in open_before.list()] == ["tone"]
    assert [(one.name, one.state) for one in lab.owner.agents.list()] == [("web", "revoked")]
    with pytest.raises(MembershipError, match="revoked already"):
        asyncio.run(lab.owner.agents.revoke("web"))
    with pytest.raises(MembershipError, match="cannot be extended"):
        asyncio.run(lab.owner.agents.renew("web"))
    again = lab.new()
    monkeypatch.setenv("IPFSMEM_KEY", again.key)
    with lab.load() as memory:
        assert memory.read("secret").body == "After the revoke."


def test_revoked_key_finds_no_older_version_of_which_pins_are_left(
    lab: KeyLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = lab.new()
    asyncio.run(lab.owner.agents.revoke("web"))
    asyncio.run(lab.owner.maintenance.gc(keep_roots=1, keep_days=0))
    monkeypatch.setenv("IPFSMEM_KEY", new.key)
    with pytest.raises(MembershipError, match="this agent key was revoked"):
        lab.load()


def test_expired_key_opens_nothing_until_it_is_renewed(lab: KeyLab, monkeypatch: pytest.MonkeyPatch) -> None:
    new = lab.new(expires="12h")
    monkeypatch.setenv("IPFSMEM_KEY", new.key)
    lab.clock.now = new.expires - 1
    lab.load().close()
    lab.clock.now = new.expires
    with pytest.raises(MembershipError, match="the agent key web expired on 2026-03-01"):
        lab.load()
    lab.owner.lock()
    asyncio.run(lab.owner.agents.renew("web", expires="4w"))
    with lab.load() as memory:
        assert memory.read("tone").body == "Say what is wrong first."
    asyncio.run(lab.owner.agents.renew("web", expires="1h"))
    lab.clock.now += 3_600_000
    with pytest.raises(MembershipError, match="expired"):
        lab.load()


def test_expired_key_is_revoked_at_the_next_admin_unlock(lab: KeyLab) -> None:
    new = lab.new(expires="1h")
    lab.clock.now += 2 * 3_600_000
    lab.owner.lock()
    lab.sync()
    assert [one.state for one in lab.owner.agents.list()] == ["expired"]
    assert any("the agent key web expired" in one for one in lab.owner.status().notices)
    lab.owner.unlock(WALLET)
    report = asyncio.run(lab.owner.sync())
    assert any("the agent key web has expired" in one.text for one in report.notices)
    assert [one.state for one in lab.owner.agents.list()] == ["revoked"]
    assert lab.owner.replica.ring is not None and lab.owner.replica.ring.view.is_revoked(new.id)


def test_status_warns_seven_days_before_the_end(lab: KeyLab) -> None:
    new = lab.new(expires="30d")
    lab.clock.now = new.expires - 7 * DAY - 1
    assert not any("agent key" in one for one in lab.owner.status().notices)
    lab.clock.now += 1
    assert any("the agent key web expires on 2026-03-31" in one for one in lab.owner.status().notices)


def test_vault_without_agents_reads_no_timeline_for_them(
    lab: KeyLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ipfsmem.sync.agent_cards.believed_cards", lambda _: pytest.fail("cards were read"))
    assert agents_of(lab.owner.replica) == [] and lab.owner.status().memories == 2


def test_older_vault_than_that_of_the_key_is_refused(lab: KeyLab, monkeypatch: pytest.MonkeyPatch) -> None:
    text = lab.new().key
    device, counter = parse_key(text).least
    assert (device, counter) == (lab.owner.device, lab.owner.replica.store.frame.ctx[lab.owner.device])
    monkeypatch.setenv("IPFSMEM_KEY", changed(text, least=(device, counter + 1)))
    with pytest.raises(ProviderUnavailable, match="show an older version of the vault"):
        lab.load()
    lab.owner.write("more", "Another text.")
    lab.sync()
    lab.load().close()
    monkeypatch.setenv("IPFSMEM_KEY", changed(text, least=("f" * 16, 1)))
    with pytest.raises(ProviderUnavailable, match="show an older version of the vault"):
        lab.load()


def test_key_of_a_revoked_creator_opens_nothing_until_renewed(
    lab: KeyLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = lab.new()
    with lab.device("b") as phone:
        asyncio.run(phone.sync())
        asyncio.run(phone.members.revoke(lab.owner.device))
        assert [one.state for one in phone.agents.list()] == ["undescribed"]
        assert any(f"ipfsmem agent renew {new.id}" in one for one in phone.status().notices)
        monkeypatch.setenv("IPFSMEM_KEY", new.key)
        with pytest.raises(MembershipError, match="has no valid end"):
            lab.load()
        asyncio.run(phone.agents.renew(new.id, expires="2d"))
        assert [one.state for one in phone.agents.list()] == ["valid"]
        lab.load().close()


# 14


def test_card_of_nobody_but_an_owners_device_is_believed(lab: KeyLab) -> None:
    new = lab.new(expires="1h")
    owner = lab.owner
    ends = believed_cards(owner.replica)[new.id].expires
    ring = owner.replica.ring
    assert ring is not None
    other = Signer25519(b"\x07" * 32)
    box = x25519_public(b"\x08" * 32)
    root = WALLET.root(twice=False)
    stranger = enrollee_of(other, box, "somebody else", ring.vault)
    person = new_person(ring.vault, other.public)
    grown = operations.enrol(ring, root.admin, stranger, "writer", since=hlc(lab.clock.now), person=person)
    with owner.replica.transaction():
        owner.replica.set_ring(grown)
    forged = agent_data(new.id, "web", "writer", ("acme",), ends + DAY)
    for writer in (new.id, stranger.id, "0" * 16):
        event = {"ts": "2027-01-01", "type": AGENT, "id": f"{writer}-1", **forged}
        with pytest.MonkeyPatch.context() as patch:
            events = [*Timeline(owner.replica).events(), event]
            patch.setattr(Timeline, "events", lambda self, events=events: events)
            assert believed_cards(owner.replica)[new.id].expires == ends
    with pytest.raises(UsageError, match="program's own"):
        owner.note(AGENT, **forged)
    with owner.replica.transaction():
        write_card(owner.replica, new.id, "web", "reader", (), ends + DAY)
    assert believed_cards(owner.replica)[new.id].expires == ends + DAY


def test_card_is_in_no_list_context_or_search(lab: KeyLab) -> None:
    lab.owner.note("decision", text="Friday is the day of web releases.")
    lab.new("web")
    owner = lab.owner
    assert [one.key for one in owner.list()] == ["tone"]
    found = owner.recall("web releases reader ipfsmem-agent", kind="all")
    assert "ipfsmem-agent" not in repr(found) and "Friday" in repr(found)
    text = owner.context(query="web reader").text
    assert "ipfsmem-agent" not in text


def test_newest_card_of_two_devices_is_valid(lab: KeyLab) -> None:
    new = lab.new(expires="1h")
    with lab.device("b") as phone:
        asyncio.run(phone.sync())
        lab.clock.now += 60_000
        asyncio.run(phone.agents.renew("web", expires="5d"))
        lab.sync()
        assert [one.expires for one in lab.owner.agents.list()] == [lab.clock.now + 5 * DAY]
    assert [one.id for one in agents_of(lab.owner.replica)] == [new.id]


def test_renewal_after_a_card_from_a_fast_clock_is_refused(lab: KeyLab) -> None:
    new = lab.new(expires="1h")
    lab.clock.now += DAY // 48
    asyncio.run(lab.owner.agents.renew("web", expires="60d"))
    lab.clock.now -= DAY // 96
    before = believed_cards(lab.owner.replica)[new.id]
    with pytest.raises(MembershipError, match="clock is ahead"):
        asyncio.run(lab.owner.agents.renew("web", expires="1h"))
    assert believed_cards(lab.owner.replica) == {new.id: before}
    events = Timeline(lab.owner.replica).events()
    assert len([one for one in events if one["type"] == AGENT]) == 2
    asyncio.run(lab.owner.agents.revoke("web"))  # as the hint says
    assert lab.new("web", expires="1h").problem == ""


def test_key_is_made_only_on_a_device_that_the_owner_added(
    lab: KeyLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = lab.new()
    words = asyncio.run(lab.owner.members.new_words()).words
    phrase = RootKeys.from_recovery(from_words(" ".join(words)))
    lab.sync()
    with lab.device("phone", phrase) as phone:
        asyncio.run(phone.sync())
        ring = phone.replica.ring
        assert ring is not None and ring.view.rank_of(phone.device) == 1
        for work in (phone.agents.new("more"), phone.agents.renew("web", expires="9w")):
            with pytest.raises(MembershipError, match="needs a device that the owner's wallet added"):
                asyncio.run(work)
        assert [(one.id, one.expires) for one in phone.agents.list()] == [(new.id, new.expires)]
        asyncio.run(phone.sync())
    lab.sync()
    monkeypatch.setenv("IPFSMEM_KEY", new.key)
    lab.load().close()
    monkeypatch.delenv("IPFSMEM_KEY")
    assert lab.new("more").problem == ""  # as the hint says


def test_last_of_many_renewals_in_a_millisecond_is_valid(lab: KeyLab) -> None:
    lab.new()
    for hours in range(1, 13):
        asyncio.run(lab.owner.agents.renew("web", expires=f"{hours}h"))
        assert [one.expires for one in lab.owner.agents.list()] == [lab.clock.now + hours * 3_600_000]


# what is refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "Web"}, "not a valid name"),
        ({"name": ""}, "not a valid name"),
        ({"name": "a" * 33}, "not a valid name"),
        ({"name": "web", "role": "writer"}, "cannot write yet"),
        ({"name": "web", "role": "drop"}, "cannot write yet"),
        ({"name": "web", "role": "admin"}, "unknown role"),
        ({"name": "web", "expires": "0h"}, "1 hour to 366 days"),
        ({"name": "web", "expires": "367d"}, "1 hour to 366 days"),
        ({"name": "web", "expires": "30"}, "1 hour to 366 days"),
        ({"name": "web", "expires": "\u0663d"}, "1 hour to 366 days"),
        ({"name": "taken"}, "there is already an agent key taken"),
        ({"name": "web", "credentials": {"kubo": {"x": "y"}}}, "not the kind of a provider"),
    ],
)
def test_wrong_arguments_create_no_key(lab: KeyLab, arguments: dict[str, object], message: str) -> None:
    lab.new("taken")
    ring = lab.owner.replica.ring
    with pytest.raises((UsageError, ConfigError), match=message):
        asyncio.run(lab.owner.agents.new(**arguments))
    assert lab.owner.replica.ring is ring and [one.name for one in lab.owner.agents.list()] == ["taken"]


def test_key_needs_its_owner_and_an_encrypted_vault(lab: KeyLab, tmp_path: Path) -> None:
    lab.owner.lock()
    with pytest.raises(MembershipError):
        lab.new()
    with (
        Memory.create("plain", "local", home=tmp_path / "p") as local,
        pytest.raises(UsageError, match="has no agent keys"),
    ):
        asyncio.run(local.agents.new("web"))


def test_key_needs_a_stored_provider(tmp_path: Path) -> None:
    with Memory.create(
        "work", "encrypted-ipfs", unlock=WALLET, passphrase=False, home=tmp_path / "a"
    ) as memory:
        with pytest.raises(ConfigError, match="no provider is set"):
            asyncio.run(memory.agents.new("web"))
        (tmp_path / "stick").mkdir()
        memory.providers.add(str(tmp_path / "stick"))
        assert asyncio.run(memory.agents.new("web")).problem == ""


def test_one_of_two_keys_of_a_name_is_revoked_by_its_id(lab: KeyLab) -> None:
    """Two devices that create a key of one name at once."""
    new = lab.new("web")
    key = replace(parse_key(new.key), seed=b"\x05" * 32)
    enrol_agent(lab.owner.replica, WALLET.root(twice=False), key, "web", new.expires)
    lab.sync()
    with pytest.raises(UsageError, match="2 agent keys have the name 'web'"):
        asyncio.run(lab.owner.agents.revoke("web"))
    asyncio.run(lab.owner.agents.revoke(key.id))
    assert {one.id: one.state for one in lab.owner.agents.list()} == {new.id: "valid", key.id: "revoked"}
    asyncio.run(lab.owner.agents.revoke("web"))


def test_unknown_key_is_not_renewed_or_revoked(lab: KeyLab) -> None:
    for work in (lab.owner.agents.renew, lab.owner.agents.revoke):
        with pytest.raises(NotFoundError, match="unknown agent key 'nobody'"):
            asyncio.run(work("nobody"))


def test_key_that_cannot_open_the_vault_names_the_problem(
    lab: KeyLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ipfsmem.open_vault import by_key

    async def closed(*_: object, **__: object) -> None:
        raise ProviderUnavailable("the provider is closed")

    monkeypatch.setattr(by_key, "open_by_key", closed)
    assert "did not open the vault: the provider is closed" in lab.new().problem


def test_owners_home_is_opened_where_it_is_named(lab: KeyLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPFSMEM_KEY", lab.new().key)
    lab.owner.close()
    with Memory.load("work", passphrase=False, home=lab.home("a")) as memory:
        memory.write("more", "A device writes.")
    lab.owner = Memory.load("work", passphrase=False, home=lab.home("a"))


# malicious strings


@pytest.mark.parametrize("text", [row["text"] for row in file_rows() if row["text"].strip()])
def test_malformed_key_in_the_environment_is_an_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPFSMEM_KEY", text)
    with pytest.raises(FormatError):
        Memory.load()


def test_key_of_another_vault_or_seed_opens_nothing(lab: KeyLab, monkeypatch: pytest.MonkeyPatch) -> None:
    text = lab.new().key
    key = parse_key(text)
    for wrong in (
        changed(text, seed=bytes(32)),
        changed(text, root=key.anchor),
        changed(text, anchor=key.root),
        changed(text, providers=(KeyProvider(str(lab.base / "gone")),)),
        changed(text, providers=(KeyProvider("nosuchkind:x"),)),
        changed(text, providers=(KeyProvider("git:ext::sh -c 'touch made'"),)),
    ):
        monkeypatch.setenv("IPFSMEM_KEY", wrong)
        with pytest.raises((ProviderError, MembershipError, ConfigError, NotFoundError)):
            lab.load()
    assert not (lab.base / "gone").exists() and not Path("made").exists()


def test_string_is_in_no_log_error_or_audit(
    lab: KeyLab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    new = lab.new()
    monkeypatch.setenv("IPFSMEM_KEY", new.key)
    with lab.load() as memory:
        shown = [repr(new), repr(memory.status()), repr(memory.replica.config)]
    shown += [repr(one) for one in lab.owner.operations.list()]
    shown += [repr(lab.owner.agents.list()), caplog.text]
    body = new.key.removeprefix("ipfsmem_ak1_")
    assert not any(body[at : at + 12] in text for text in shown for at in range(0, len(body) - 12, 4))
    assert any("agent new" in one for one in shown)
