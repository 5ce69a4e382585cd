"""Networks that turn latents into images."""
