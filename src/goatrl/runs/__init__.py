"""Runs on disk: what was trained, how far it is, and the agents that came of it."""
