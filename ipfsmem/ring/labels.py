"""What people call the devices of a memory, and which device a person names (format section 4, the field `label`).

A label is text for people: several members may have the same one, and it may look like the beginning of another member's
id. So nothing is decided by a label alone, and a notice adds the id where the label would leave a doubt. Pure: a ring in,
texts and ids out.
"""

from __future__ import annotations

from collections.abc import Mapping

from ipfsmem.ring.keyring import Ring


def label_of(ring: Ring | None, device: str) -> str:
    """The label of a device, or its id where the ring has none for it.

    All ids of a device go by the label of its enrolment, which is the one that `relabel` changes.
    """
    members = ring.view.members if ring is not None else {}
    member = members.get(device)
    enrolled = members.get(member.family, member) if member is not None else None
    return (enrolled.label if enrolled is not None else "") or device


def label_and_id(ring: Ring | None, device: str) -> str:
    """`label (id)`, or `device id` where the ring has no label for it."""
    label = label_of(ring, device)
    return f"{label} ({device})" if label != device else f"device {device}"


def distinct_label(ring: Ring | None, device: str) -> str:
    """The label of a device, followed by its id where another device has the same label."""
    label = label_of(ring, device)
    members = ring.view.members.values() if ring is not None else ()
    families = {member.family for member in members if member.label == label}
    return label_and_id(ring, device) if len(families) > 1 else label


def families_named(ring: Ring | None, text: str, labels: Mapping[str, str]) -> set[str]:
    """The members that `text` names, each by the id under which it was enrolled: all ids of one device are one member.

    `labels` says who may be named: ids, each with its label. An id given in full names that member alone, whatever another
    one is called. Any other text names everybody whose id begins with it and everybody who has it as a label, together:
    a label may look like the beginning of an id. The empty text names nobody.
    """
    found = [text] if text in labels else []
    if text and not found:
        found = [one for one, label in labels.items() if label == text or one.startswith(text)]
    return {ring.view.family_of(one) if ring is not None else one for one in found}
