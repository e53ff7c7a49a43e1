"""The functions of the standard, a file for each of its chapters."""
