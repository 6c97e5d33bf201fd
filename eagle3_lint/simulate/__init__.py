"""Facts × Contract → what the runtime's loader would do. Pure; nothing here touches the disk."""
