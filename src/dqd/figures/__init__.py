"""Arrays become pictures: what is shown is worked out apart from drawing it."""
