"""HTTP faces of ipfsmem. Importing this room imports no web framework; its modules do, and are imported when used."""
