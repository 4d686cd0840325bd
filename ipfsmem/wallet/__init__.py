"""From a wallet to the keys of a memory: the signed message, its gates, signers, root keys and recovery words (format 2).

Pure but for `signers`, which reads and writes keystore files. Who is a member is decided in `ring`.
"""
