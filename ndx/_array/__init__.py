"""Arrays without their methods: a data type and a layout over a block."""
