"""Whether the account's plan at Pinata accepts CARs.

Pinata reveals it only when a CAR is sent, so a small one is sent before a large one. Each upload records its
kind in a keyvalue; at the next publish the list of files answers the question.
"""

from __future__ import annotations

import logging
from typing import Final

from ipfsmem.content.tree import build_tree
from ipfsmem.errors import ProviderError
from ipfsmem_providers.http.body import SpooledCar
from ipfsmem_providers.pinata.api import Api, ListedFile, NoCars

#: Keyvalue for the kind of an upload.
UPLOAD_KIND_KEY: Final = "ipfsmem_upload"
CAR: Final = "car"
#: A folder by the legacy API, the documented way, and one by v3, which works for many against its documents.
LEGACY_FOLDER: Final = "legacy folder"
FOLDER: Final = "folder"
#: A CAR of at most this many bytes is sent without probing: a probe would cost more than a failed upload.
SMALL: Final = 256 * 1024
_NAME: Final = "ipfsmem-probe"
_TEXT: Final = (
    b"ipfsmem uploaded this file to test whether this account's plan accepts CARs. You can delete it.\n"
)
_log = logging.getLogger("ipfsmem.providers")


def sent_as_car(file: ListedFile) -> bool | None:
    """Return whether an entry was uploaded as a CAR; None when we did not upload it."""
    how = (file.keyvalues or {}).get(UPLOAD_KIND_KEY)
    return how == CAR if how in (CAR, FOLDER, LEGACY_FOLDER) else None


def sent_by_legacy_api(file: ListedFile) -> bool | None:
    """Return whether an entry was uploaded as a folder by the legacy API, not by v3; None for a CAR, and when
    we did not upload it."""
    how = (file.keyvalues or {}).get(UPLOAD_KIND_KEY)
    return how == LEGACY_FOLDER if how in (FOLDER, LEGACY_FOLDER) else None


async def accepts_cars(api: Api) -> bool:
    """Upload a CAR of a few hundred bytes, and delete it if accepted; tell whether it was. Raises ProviderError."""
    tree = build_tree({"README.txt": _TEXT})
    with await SpooledCar.write(tree.cid, tree.blocks) as car:
        try:
            file = await api.upload([(f"{_NAME}.car", car)], _NAME, {}, car=True)
        except NoCars as error:
            _log.info("%s; uploading folders instead", error)
            return False
    try:
        await api.delete(file.id)
    except ProviderError as error:  # it is small and describes itself
        _log.info("could not delete the probe file at Pinata: %s", error)
    return True
