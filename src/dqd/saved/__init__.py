"""Archives as files, without JAX."""
