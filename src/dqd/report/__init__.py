"""Reports: figure data (panels) apart from drawing (draw). Both read plain arrays and never import JAX."""
