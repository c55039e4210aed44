"""Errors, options and helpers without knowledge of jobs or logs. Every package may import it."""
