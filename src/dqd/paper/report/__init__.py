"""A suite of trials beside what was published: tables, statistics, figures, words. Never imports JAX."""
