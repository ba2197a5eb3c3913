"""Processes of a cluster on this machine: started, watched, stopped, and found again by their folders."""
