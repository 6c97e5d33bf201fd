"""Findings → edits → what the writer is to do. Pure: nothing here touches the disk."""
