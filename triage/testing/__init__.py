"""Helpers for tests of programs that use triage; they need only the standard library.

- `triage.testing.jobs` builds job directories;
- `triage.testing.slack` is a local server that answers like Slack, `triage.testing.forges` like GitHub and GitLab;
  `triage.testing.webhook` receives signed webhooks. The servers enforce the documented limits, and fail on demand
  (`triage.testing.local`).
"""
