"""The pages, with HTTP requests and in a real browser."""
