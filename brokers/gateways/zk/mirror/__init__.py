"""What ZooKeeper holds, and what it must hold so that it shows what was decided."""
