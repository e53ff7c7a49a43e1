"""What the methods of NDArray do."""
