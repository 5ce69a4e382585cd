"""Words for people. Nothing that is printed may end a run, so everything that is printed passes here."""
