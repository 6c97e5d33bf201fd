"""Drafts as their publishers named, sized and configured them, before the runtimes they are for."""
