"""An index in the memory of one process, with snapshots on disk."""
