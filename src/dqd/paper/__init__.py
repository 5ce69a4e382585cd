"""The paper, run again: its problems and settings by name, its tables as suites of trials."""
