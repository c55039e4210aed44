"""Helpers for tests of what is built on triage: `triage.testing.jobs` builds job directories."""
