"""Tools for loops: batches made ahead, in the memory of workspaces."""
