"""Tools for loops, built on the public names of ndx alone."""
