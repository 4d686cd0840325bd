"""The tables of this device's database, a module each: the only SQL of the package.

A function takes the connection and gives typed rows. One that says "inside a transaction" changes rows and must be called
inside `Database.transaction`; the others read what was committed last, or what the transaction they stand in has put there.
"""
