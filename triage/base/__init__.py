"""The ground floor: errors, options, and helpers without knowledge of jobs or logs. Every room may import it."""
