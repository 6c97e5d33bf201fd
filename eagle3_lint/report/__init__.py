"""Reports → text and machine formats; one function each."""
