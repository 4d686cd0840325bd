"""Show device labels, and resolve a user's text to devices (format section 4, the field `label`).

Labels are for display only: several members can have the same label, and a label can look like a prefix of another
member's id. Notices add the id where a label is ambiguous. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from ipfsmem.ring.keyring import Ring


def label_of(ring: Ring | None, device: str) -> str:
    """Return the label of a device; its id if the ring has no label for it.

    All ids of a device share the label of its enrolment, which `relabel` changes.
    """
    members = ring.view.members if ring is not None else {}
    member = members.get(device)
    enrolled = members.get(member.family, member) if member is not None else None
    return (enrolled.label if enrolled is not None else "") or device


def label_and_id(ring: Ring | None, device: str) -> str:
    """Return `label (id)`, or `device id` if the ring has no label for it."""
    label = label_of(ring, device)
    return f"{label} ({device})" if label != device else f"device {device}"


def distinct_label(ring: Ring | None, device: str) -> str:
    """Return the label of a device, followed by its id if another device has the same label."""
    label = label_of(ring, device)
    members = ring.view.members.values() if ring is not None else ()
    families = {member.family for member in members if member.label == label}
    return label_and_id(ring, device) if len(families) > 1 else label


def families_named(ring: Ring | None, text: str, labels: Mapping[str, str]) -> set[str]:
    """Return the enrolled ids of the members that match `text`; all ids of one device are one member.

    `labels` maps the candidate ids to their labels. A full id matches only that member. Any other text matches every
    member whose id starts with it and every member with that label, since a label can look like a prefix of an id. ""
    matches none.
    """
    ids = [text] if text in labels else []
    if text and not ids:
        ids = [one for one, label in labels.items() if label == text or one.startswith(text)]
    return {ring.view.family_of(one) if ring is not None else one for one in ids}
