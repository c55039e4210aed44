"""From lines to records and blocks: join cut lines, separate mixed writers, group lines that belong together."""
