"""Processes of a cluster on this machine: start, watch and stop them, and find them again by their folders."""
