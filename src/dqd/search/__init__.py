"""A search: an archive and an emitter in motion, one iteration at a time."""
