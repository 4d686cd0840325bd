"""A folder at an SSH server, by the `ssh` program of the user."""

from ipfsmem_providers.sftp.provider import SftpProvider

__all__ = ["SftpProvider"]
