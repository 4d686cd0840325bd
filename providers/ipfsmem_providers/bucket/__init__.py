"""Object storage as a provider: S3 and its like, Google Cloud, Azure."""

from ipfsmem_providers.bucket.provider import BucketProvider

__all__ = ["BucketProvider"]
