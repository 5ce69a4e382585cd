"""Models of other libraries: PyTorch."""
