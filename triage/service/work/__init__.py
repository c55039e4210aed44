"""Tasks in the background: `worker` claims a task, `sandbox` runs it in a limited process, `analysis` is its work.

`job_files` knows where uploads are on disk, `supervisor` keeps all processes of `triage serve` running.
"""
