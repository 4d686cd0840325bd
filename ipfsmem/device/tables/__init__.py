"""The tables of this device's database, a module each: the only SQL of the package.

A function accepts the connection and returns typed rows. One marked "inside a transaction" changes rows and must be called inside
`Database.transaction`; the others read the last commit, or inside a transaction its writes too.
"""
