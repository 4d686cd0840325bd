"""Devices of one memory in every order of work, failure, restore and cloning: nothing that nobody was shown disappears,
and when all have synced they show the same and stand on one root.

Every device is a real memory in a folder of its own; the provider is simulated, also its failures and lies about names.
The model knows which texts a write, a delete or a wish to forget had been shown, and nothing else.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from ipfsmem.content.cid import ipns_name
from ipfsmem.errors import ChangedError, LimitError, ProviderError
from ipfsmem.memory import Memory
from ipfsmem.storage.readings import Reading
from tests.device_lab import ROOT, Lab, all_texts, delete, events, same
from tests.effort import cases

DEVICES = ("a", "b", "c", "d")
CLONES = ("e", "f")
NAMES = st.sampled_from((*DEVICES, *CLONES))
KEYS = st.sampled_from(("tone", "role", "plan"))


class Devices(RuleBasedStateMachine):
    """Four devices and up to two clones."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="devices-"))
        self.lab = Lab(self.folder)
        self.count = 0
        #: Texts and events that must be found on every device in the end.
        self.wanted: set[str] = set()
        self.wanted_events: set[str] = set()
        #: Written by a device since its last publish that was answered: gone with its disk.
        self.unsent: dict[str, set[str]] = {}
        self.readings: list[tuple[str, Reading, set[str]]] = []
        self.saved: dict[str, str] = {}
        #: Put back or cloned, and not yet shown their own names: who loses a disk and is lied to about its own name
        #: at once can overwrite the only name of what it had published.
        self.forgetful: set[str] = set()

    @initialize()
    def begin(self) -> None:
        """One vault on four devices, in step."""
        a = self.lab.create("a")
        self.lab.sync(a)
        for name in DEVICES[1:]:
            self.lab.restore(name)
        self.lab.settle(*self.lab.devices.values())
        self.unsent = {name: set() for name in (*DEVICES, *CLONES)}

    def device(self, name: str) -> Memory:
        """A device, or the first one when there is no such clone yet."""
        return self.lab.devices.get(name) or self.lab.devices["a"]

    def name(self, name: str) -> str:
        return name if name in self.lab.devices else "a"

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def shown(self, memory: Memory, key: str, dots: tuple[str, ...] | None = None) -> set[str]:
        """The texts behind dots of a key; without dots behind what is shown now."""
        if dots is None:
            reading = memory.read(key)
            dots = reading.token if reading else ()
        found: set[str] = set()
        with memory.replica.reading():
            for dot, value in memory.replica.store.entry(f"m/{key}").items():
                data = memory.replica.store.body(f"m/{key}", value)
                if dot in dots and data is not None:
                    found.add(data.decode().partition("\n---\n\n")[2].rstrip("\n"))
        return found

    @rule(who=NAMES, key=KEYS)
    def write(self, who: str, key: str) -> None:
        """Write what is new over what is shown."""
        memory, text = self.device(who), self.fresh("t")
        replaced = self.shown(memory, key)
        try:
            memory.write(key, text)
        except LimitError:
            return
        self.wanted = (self.wanted - replaced) | {text}
        self.unsent[self.name(who)].add(text)

    @rule(who=NAMES, key=KEYS)
    def read(self, who: str, key: str) -> None:
        """Remember what was read, for a later write."""
        reading = self.device(who).read(key)
        if reading is not None:
            texts = self.shown(self.device(who), key, reading.token)
            self.readings.append((self.name(who), reading, texts))

    @precondition(lambda self: self.readings)
    @rule(data=st.data())
    def write_old(self, data: st.DataObject) -> None:
        """Write with a reading that may be old by now."""
        who, reading, texts = data.draw(st.sampled_from(self.readings))
        text = self.fresh("t")
        try:
            self.device(who).write(reading.key, text, seen=reading)
        except (LimitError, ChangedError):
            return
        self.wanted = (self.wanted - texts) | {text}
        self.unsent[who].add(text)

    @rule(who=NAMES, key=KEYS)
    def forget(self, who: str, key: str) -> None:
        """The user's wish: all siblings that are here have been shown."""
        memory = self.device(who)
        with memory.replica.reading():
            here = tuple(memory.replica.store.entry(f"m/{key}"))
        texts = self.shown(memory, key, here)
        with contextlib.suppress(LimitError):
            if memory.forget(key):
                self.wanted -= texts

    @rule(who=NAMES, key=KEYS)
    def delete(self, who: str, key: str) -> None:
        """Delete what is shown."""
        memory = self.device(who)
        texts = self.shown(memory, key)
        if delete(memory, key):
            self.wanted -= texts

    @rule(who=NAMES)
    def note(self, who: str) -> None:
        """An event."""
        kind = self.fresh("e")
        self.device(who).note(kind)
        self.wanted_events.add(kind)
        self.unsent[self.name(who)].add(kind)

    @rule(who=NAMES)
    def sync(self, who: str) -> None:
        """A sync that works."""
        report = self.lab.sync(self.device(who))
        note(f"sync {who}: {[notice.kind for notice in report.notices]}")
        if report.root is not None:
            self.unsent[self.name(who)] = set()
            self.forgetful.discard(self.name(who))

    @rule(who=NAMES, call=st.integers(1, 14), answered=st.booleans())
    def sync_failing(self, who: str, call: int, answered: bool) -> None:
        """A call fails before it does anything, or its answer is lost."""
        provider = self.lab.provider(self.name(who))
        (provider.lose_answer if answered else provider.fail_call)(call)
        try:
            self.sync(who)
        except ProviderError as error:
            note(f"sync {who}: {error}")
        finally:
            provider._failing.clear()
            provider._unanswered.clear()

    @rule(who=NAMES, back=st.integers(1, 3))
    def sync_stale(self, who: str, back: int) -> None:
        """The provider serves names of the past."""
        provider = self.lab.provider(self.name(who))
        own = ipns_name(self.device(who).replica.device.sign_public)
        provider.faults.old_record = {
            name: max(0, len(records) - 1 - back)
            for name, records in self.lab.cloud.names.items()
            if name != own or self.name(who) not in self.forgetful
        }
        try:
            self.sync(who)
        finally:
            provider.faults.old_record = {}

    @rule(who=NAMES, slot=st.sampled_from("xy"))
    def save(self, who: str, slot: str) -> None:
        """Keep a copy of a device's folder."""
        self.lab.save(self.name(who), slot)
        self.saved[slot] = self.name(who)

    @precondition(lambda self: self.saved)
    @rule(data=st.data())
    def put_back(self, data: st.DataObject) -> None:
        """A device's disk is again what was saved; what it had not sent is gone."""
        slot = data.draw(st.sampled_from(sorted(self.saved)))
        who = self.saved[slot]
        self.lab.put_back(who, slot)
        self.wanted -= self.unsent[who]
        self.wanted_events -= self.unsent[who]
        self.unsent[who] = set()
        self.forgetful.add(who)
        self.readings = [item for item in self.readings if item[0] != who]

    @precondition(lambda self: self.saved and len(self.lab.devices) < len(DEVICES) + len(CLONES))
    @rule(data=st.data(), hidden=st.booleans())
    def clone(self, data: st.DataObject, hidden: bool) -> None:
        """Another machine with a saved folder, which may take itself for the first."""
        slot = data.draw(st.sampled_from(sorted(self.saved)))
        name = next(name for name in CLONES if name not in self.lab.devices)
        self.lab.copy_to(slot, name, hidden=hidden)
        self.forgetful.add(name)

    def teardown(self) -> None:
        try:
            if self.lab.devices:
                self.finish()
        finally:
            self.lab.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def finish(self) -> None:
        """Everybody syncs, with the wallet at hand where it was asked for."""
        for memory in self.lab.devices.values():
            memory.unlock(ROOT)
        memories = list(self.lab.devices.values())
        self.lab.settle(*memories, rounds=16)
        for name, memory in self.lab.devices.items():
            lost = self.wanted - all_texts(memory)
            assert not lost, f"device {name} has lost {sorted(lost)}"
            missing = self.wanted_events - set(events(memory))
            assert not missing, f"device {name} has lost the events {sorted(missing)}"
        same(*memories)


Devices.TestCase.settings = settings(max_examples=cases(6, 200), stateful_step_count=cases(20, 40))
TestDevices = Devices.TestCase
