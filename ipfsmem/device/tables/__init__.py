"""The tables of this device's database, a module each: the only SQL of the package.

A function takes the connection and gives typed rows. One that says "inside a transaction" changes rows and must be called
inside `Database.transaction`; the others read the last commit, or inside a transaction what that has written.
"""
