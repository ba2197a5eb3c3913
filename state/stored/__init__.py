"""The bytes in which state is stored."""
