"""A file name in two Unicode normal forms is one memory; a key of an earlier version is kept."""

import unicodedata

from ipfsmem.bundle.header_edit import edit_memory
from ipfsmem.bundle.keys import key_of_foreign_name, key_of_spelling
from ipfsmem.files.file_names import name_of, rendered_name

NFC = unicodedata.normalize("NFC", "Café résumé.md")
NFD = unicodedata.normalize("NFD", NFC)


def test_name_in_nfc_and_nfd_has_one_key_and_one_origin():
    assert NFC != NFD
    assert (
        key_of_foreign_name(NFC)
        == key_of_foreign_name(NFD)
        == name_of(NFD)
        == (key_of_foreign_name(NFC).key, NFC)
    )
    assert key_of_spelling(NFC) == key_of_foreign_name(NFC)


def test_file_known_by_its_former_key_keeps_key_and_name():
    old = key_of_spelling(NFD)
    assert old.key != key_of_foreign_name(NFD).key
    assert name_of(NFD, old.key) == (old.key, NFD)
    text = edit_memory(b"text\n", {"origin_name": NFD})
    assert rendered_name(old.key, text) == NFD
