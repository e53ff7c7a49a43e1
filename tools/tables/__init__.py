"""Tables from which modules are generated."""
