"""Slack: messages, and answers to buttons and commands.

Posting needs slack-sdk (extra `slack`); verifying signatures needs no package.
"""
