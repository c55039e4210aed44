"""Follow a running job: read new lines, report failures once, and monitor the pace of the ranks."""
