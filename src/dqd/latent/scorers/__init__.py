"""Networks that turn images into scores."""
