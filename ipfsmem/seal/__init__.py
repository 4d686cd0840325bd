"""Keys and sealing: wallet message, key tree, sealed objects, recovery words and secrets at rest.

Pure but for `signers`, which reads and writes keystore files. It never opens a socket and never decides who is a member.
"""
