"""What a gateway does whose log is lost or damaged: take it from another gateway, or from what brokers have of it."""
