"""What ZooKeeper holds, and what it must hold to show what was decided."""
