"""Who turns the crank: launches of iterations, on a device, on several, or around evaluations elsewhere."""
