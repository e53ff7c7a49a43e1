"""The log of births and deaths of arrays, for recordings."""
