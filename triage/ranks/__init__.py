"""Who wrote a line: prefixes, log wrappers, file names, and the map of ranks, hosts and processes."""
