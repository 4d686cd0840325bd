"""A folder at a WebDAV server: Nextcloud, ownCloud, a NAS, Apache."""

from ipfsmem_providers.webdav.provider import WebdavProvider

__all__ = ["WebdavProvider"]
