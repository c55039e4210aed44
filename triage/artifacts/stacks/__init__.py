"""Stacks of live processes: what every rank does, and which rank is somewhere else than the others."""
