"""The memory of workspaces: arenas that hand out ranges in cycles."""
