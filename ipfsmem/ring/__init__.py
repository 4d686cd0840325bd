"""The key ring: signed statements of who is a member, what they mean, and the operations on them (format 4).

Pure values: two rings are joined into one, whatever the order. It never opens a file or a socket.
"""
