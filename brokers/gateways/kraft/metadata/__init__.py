"""From decisions to metadata records: what a controller quorum would have written, as a pure function."""
