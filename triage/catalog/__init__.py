"""Signatures: read YAML files into a frozen `Catalog` and match it against evidence.

`load.load` returns the catalog, `match.Matcher` matches it, `check.check_files` verifies signature files. Import the
modules themselves: this package imports nothing, which keeps an ingest fast to start.
"""
