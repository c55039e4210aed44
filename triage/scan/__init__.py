"""Scan all bytes once for the literals of the catalog."""
