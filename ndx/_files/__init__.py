"""Files: mappings of them, and files that are replaced as a whole."""
