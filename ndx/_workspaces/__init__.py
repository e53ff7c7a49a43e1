"""What users hold: workspaces, their policies, and the list of all of them."""
