"""Answers for assistants over the Model Context Protocol: `triage mcp`. The package `mcp` is needed by `server` alone.

Whoever writes a log writes what an assistant reads. So each answer keeps apart what triage and its catalog say from
what stood in the
files: the latter lies under the key `untrusted`, wherever it appears, and the notice in each answer says what that
means.
"""
