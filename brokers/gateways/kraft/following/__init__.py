"""Follow the engine's decisions: into the metadata log, and to the parts of a gateway that act on them."""
