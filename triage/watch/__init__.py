"""Following a job that runs: what was added to its files, when to speak of a failure, and the pace of its ranks before
any error.
"""
