"""Help for testing code that uses ndx, and backends of one's own."""
