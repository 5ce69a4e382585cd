"""Runs in the browser: a page that shows what is in every cell. Reads files only; never imports JAX."""
