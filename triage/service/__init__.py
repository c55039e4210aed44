"""The web API and the pages of `triage serve`. Needs `pip install 'triage-kb[web]'`."""
