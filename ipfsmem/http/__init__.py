"""HTTP interfaces of ipfsmem. Importing this package imports no web framework; its modules do, and are imported when used."""
