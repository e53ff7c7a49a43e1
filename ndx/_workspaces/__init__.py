"""Workspaces, their policies, and the list of all workspaces."""
