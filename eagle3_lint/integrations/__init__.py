"""One module per training library, which that module imports and this package does not need."""
