"""Signatures: YAML files in, a frozen `Catalog` out, and what it says about evidence.

`load.load` gives the catalog, `match.Matcher` asks it, `check.check` proves files. Import the modules themselves: this
package imports nothing, so that the way of an ingest stays short.
"""
