"""A run on disk: plain files that survive a crash. Never imports JAX."""
