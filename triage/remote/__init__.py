"""Read objects of object stores and servers by ranges, through fsspec. Nothing here is imported for local files.

`session` ties it together: `listing` finds the objects below an address, `transfer` reads with retries and counts the
requests, `cell_cache` keeps what was read in a temporary file, `opened_object` reads one object at any offset.
"""
