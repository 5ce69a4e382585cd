"""What we tell XLA: what to keep apart, what to keep for the next start, which flags."""
