"""Who is at the other end of a gateway's connection, and what that principal may do."""
