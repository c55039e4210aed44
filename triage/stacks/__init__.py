"""Stacks: what a process was doing when it died or hung, whoever printed it.

`parser` reads printed stacks, `signature` finds the crash point. The room knows no other room: logs (`records`,
`evidence`), core files and dumps of hung processes (`artifacts`) all use its model.
"""
