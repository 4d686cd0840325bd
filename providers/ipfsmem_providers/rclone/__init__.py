"""A folder at a remote of rclone: Google Drive, OneDrive, Dropbox, SMB and what else rclone knows."""

from ipfsmem_providers.rclone.provider import RcloneProvider

__all__ = ["RcloneProvider"]
