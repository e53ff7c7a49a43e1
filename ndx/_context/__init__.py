"""Which backend and workspace serve new arrays, here and now."""
