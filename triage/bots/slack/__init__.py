"""Slack: posting, and what people press and write there. Needs slack-sdk (extra `slack`) to post; checking signatures
needs nothing.
"""
