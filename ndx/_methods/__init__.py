"""The methods of NDArray that are longer than one line."""
