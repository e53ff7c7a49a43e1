"""The log of births and deaths that recordings read."""
