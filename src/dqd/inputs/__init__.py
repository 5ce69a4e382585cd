"""The border where users' things come in: arguments, arrays, solutions of any structure, names."""
