"""Tools for assistants over the Model Context Protocol: `triage mcp`. Only `server` needs the package `mcp`.

Whoever writes a log also writes what an assistant reads. So each response puts everything from the files under the key
`untrusted`, and its notice says what that means; other texts come from triage and its catalog.
"""
