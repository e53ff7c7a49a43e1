"""What several test modules share; imported explicitly."""
