"""Draws what `panels` works out, in the style of `dqd.figures`."""
