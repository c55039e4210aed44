"""Change the code in small ways and see whether the mirrored tests notice (`make mutate`)."""
