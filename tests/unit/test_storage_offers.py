"""Storage that `init` offers, from other programs' settings of any content, without reading a mount."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.cli.storage_offers import Computer, StorageOffer, storage_offers


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home/.git").mkdir(parents=True)  # a work tree without remotes, wherever the tests run
    return tmp_path / "home"


def offers(
    home: Path, mounts: str = "", *, programs: Iterable[str] = ("git", "obstore"), **environment: str
) -> list[StorageOffer]:
    return storage_offers(
        Computer(home, home, environment, mounts, set(programs).__contains__, set(programs).__contains__)
    )


def wrote(path: Path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def test_empty_computer_offers_nothing(home: Path) -> None:
    assert offers(home) == []


@pytest.mark.parametrize(
    ("program", "folder"),
    [
        ("iCloud Drive", "Library/Mobile Documents/com~apple~CloudDocs"),
        ("iCloud Drive", "iCloudDrive"),
        ("Dropbox", "Dropbox"),
        ("OneDrive", "OneDrive - Contoso"),
        ("OneDrive", "Library/CloudStorage/OneDrive-Personal"),
        ("Google Drive", "Library/CloudStorage/GoogleDrive-a@example.org/My Drive"),
        ("Nextcloud", "Nextcloud"),
    ],
)
def test_default_folders_of_sync_programs_are_offered(home: Path, program: str, folder: str) -> None:
    (home / folder).mkdir(parents=True)
    path = home / folder / "ipfsmem"
    assert offers(home) == [StorageOffer(f"{program}: {path}", str(path), is_folder=True)]


def test_settings_of_sync_programs_name_their_folders(home: Path) -> None:
    for name in ("Boxes", "Work", "Sync", "Later", "Cloud", "One"):
        (home / name).mkdir()
    wrote(
        home / ".dropbox/info.json",
        f'{{"personal": {{"path": "{home}/Boxes"}}, "business": {{"path": "{home}/gone"}}}}',
    )
    wrote(
        home / ".local/state/syncthing/config.xml",
        f"""<configuration><folder id="a" path="~/Sync" type="sendreceive"/>
        <folder id="b" path="{home}/Work" type="receiveonly"/>
        <folder id="c" path="{home}/Later"><paused>true</paused></folder></configuration>""",
    )
    wrote(home / ".config/Nextcloud/nextcloud.cfg", f"[Accounts]\n0\\Folders\\1\\localPath={home}/Cloud/\n")
    found = offers(home, OneDrive=str(home / "One"))
    assert [offer.text.partition(":")[0] for offer in found] == [
        "Dropbox",
        "OneDrive",
        "Syncthing",
        "Nextcloud",
    ]
    assert [offer.spec for offer in found] == [
        str(home / name / "ipfsmem") for name in ("Boxes", "One", "Sync", "Cloud")
    ]


def test_one_folder_is_offered_once(home: Path) -> None:
    (home / "Dropbox").mkdir()
    wrote(home / ".dropbox/info.json", f'{{"personal": {{"path": "{home}/Dropbox"}}}}')
    assert len(offers(home)) == 1


def test_shares_and_drives_are_offered_without_reading_them(home: Path) -> None:
    mounts = "\n".join(
        [
            "/dev/sda1 / ext4 rw,relatime 0 0",
            "nas:/vol/me /mnt/my\\040nas nfs4 rw,vers=4.2 0 0",
            "//box/me /mnt/box cifs ro,vers=3 0 0",
            "/dev/sdb1 /media/anna/STICK vfat rw,nosuid 0 0",
            "/dev/sdc1 /boot vfat rw 0 0",
            "torn",
        ]
    )
    assert [(offer.text, offer.spec) for offer in offers(home, mounts)] == [
        ("network share: /mnt/my nas/ipfsmem", "/mnt/my nas/ipfsmem"),
        ("drive: /media/anna/STICK/ipfsmem", "/media/anna/STICK/ipfsmem"),
    ]


def test_accounts_of_gh_and_remotes_here_are_offered_as_git(home: Path) -> None:
    wrote(
        home / ".config/gh/hosts.yml",
        "github.com:\n    users:\n        anna:\n    git_protocol: ssh\n    user: anna\nghe.example:\n    user: a-b\n",
    )
    wrote(
        home / ".git/config",
        '[core]\n\tbare = false\n[remote "origin"]\n\turl = git@gitlab.com:team/sub/project.git\n\tfetch = +x\n'
        '[remote "x"]\n\turl = ext::sh -c evil\n[remote "h"]\n\turl = https://token@example.org/a/b\n[branch "m"]\n\turl = no/x\n'
        '[remote "p"]\n\turl = https://oauth2:TOK@gitlab.com/a/b\n[remote "s"]\n\turl = ssh://git:pw@host/a/b\n'
        '[remote "b"]\n\turl = https://host/a{x}/b\n[remote "d"]\n\turl = https://host/../b\n'
        '[remote "o"]\n\turl = git@own.example:vault.git\n',
    )
    found = offers(home)
    assert [offer.spec for offer in found] == [
        "git:git@github.com:anna/{}.git",
        "git:https://ghe.example/a-b/{}.git",
        "git:git@gitlab.com:team/sub/{}.git",
        "git:git@own.example:{}.git",
    ]
    assert not any(secret in str(found) for secret in ("TOK", "pw", "token"))
    assert all(offer.asks == "Repository" for offer in found)
    assert "gh repo create anna/NAME --private" in found[0].text
    assert offers(home, programs=()) == []


def test_bucket_is_offered_for_a_profile_with_keys(home: Path) -> None:
    wrote(
        home / ".aws/credentials",
        "[default]\naws_access_key_id = A\naws_secret_access_key = S\n[work]\nregion = x\n",
    )
    (offer,) = offers(home)
    assert (offer.spec, offer.asks) == (
        "bucket:s3://{}/ipfsmem",
        "Bucket",
    ) and "profile default" in offer.text
    assert offers(home, AWS_PROFILE="work") == [] and offers(home, programs=()) == []
    (offer,) = offers(home, AWS_PROFILE="work", AWS_ACCESS_KEY_ID="A")
    assert "AWS_ACCESS_KEY_ID" in offer.text


def test_remotes_of_rclone_are_offered(home: Path) -> None:
    config = "[drive]\ntype = drive\ntoken = {}\n\n[my nas]\ntype = smb\n\n[odd:\n[empty]\n[b2]\ntype = b2\n"
    wrote(home / ".config/rclone/rclone.conf", config)
    assert [one.spec for one in offers(home, programs=["rclone"])] == ["rclone:drive:{}", "rclone:b2:{}"]
    assert offers(home, programs=[]) == []
    wrote(home / "other.conf", "# Encrypted rclone configuration File\n\nRCLONE_ENCRYPT_V0:\nAAAA\n")
    assert offers(home, RCLONE_CONFIG=str(home / "other.conf"), programs=["rclone"]) == []


def test_one_program_leaves_room_for_the_others(home: Path) -> None:
    for number in range(9):
        (home / f"OneDrive - {number}").mkdir()
    (home / "Nextcloud").mkdir()
    assert [one.text.partition(":")[0] for one in offers(home)] == ["OneDrive"] * 4 + ["Nextcloud"]


@pytest.mark.parametrize(
    ("url", "spec"),
    [
        ("ssh://me@host:22/a/b/c.git/", "git:ssh://me@host:22/a/b/{}.git"),
        ("https://host/b", "git:https://host/{}.git"),
        ("git@host:~anna/b.git", "git:git@host:~anna/{}.git"),
    ],
)
def test_repository_next_to_the_current_one_is_offered(home: Path, url: str, spec: str) -> None:
    wrote(home / ".git/config", f'[remote "origin"]\nurl = {url}\n')
    assert [one.spec for one in offers(home)] == [spec]


@given(st.sampled_from([".dropbox/info.json", ".config/syncthing/config.xml", ".config/gh/hosts.yml", ".aws/credentials", ".config/rclone/rclone.conf"]),
       st.one_of(st.binary(max_size=60), st.sampled_from([
           b'{"a": {"path": 1}, "b": [], "c": {"path": "\\u0000"}}', b"[[]]", b"[" * 40_000, b"{}" * 2, b"<a><folder/></a>",
           b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", b"[default\naws", b"github.com:\n    user: \x1b[2J\n"])))  # fmt: skip
def test_invalid_settings_lose_no_other_offer(
    tmp_path_factory: pytest.TempPathFactory, file: str, content: bytes
) -> None:
    home = tmp_path_factory.mktemp("home")
    (home / "OneDrive").mkdir()
    wrote(home / file, content)
    assert str(home / "OneDrive/ipfsmem") in [offer.spec for offer in offers(home)]


def test_unreadable_settings_offer_nothing(home: Path) -> None:
    (home / ".dropbox/info.json").mkdir(parents=True)
    (home / ".aws").symlink_to(home / ".aws")
    assert offers(home) == []
