"""One reader for each form: bytes in, neutral records out. No disk, no clock, no access to the vault."""
