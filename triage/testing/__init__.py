"""Helpers for tests of what is built on triage.

- `triage.testing.jobs` builds job directories;
- `triage.testing.slack` is a local server that answers like Slack, `triage.testing.forges` like GitHub and GitLab,
  `triage.testing.webhook` takes signed webhooks. They need nothing beyond the standard library, keep to the documented
  limits, and fail
  when they are told to (`triage.testing.local`).
"""
