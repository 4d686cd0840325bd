"""From a wallet to root keys: the signed message, its checks, signers, root keys and recovery phrase (format 2).

Pure except `signers`, which reads and writes keystore files. `ring` decides who is a member.
"""
