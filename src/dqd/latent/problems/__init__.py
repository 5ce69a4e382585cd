"""Generators and scorers put together: `lsi-digits`, `lsi-faces`, `lsi-stylegan`."""
