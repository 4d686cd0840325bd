"""Derive root keys from a wallet's signature or a recovery phrase (format section 2).

Pure, except for `signers`, which reads and writes keystore files. `ring` decides who is a member.
"""
