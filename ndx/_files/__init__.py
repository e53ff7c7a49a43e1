"""Files: mappings, and atomic replacement."""
