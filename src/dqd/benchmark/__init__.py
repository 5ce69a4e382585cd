"""The fair field: many functions, several algorithms, equal budgets, one page. `dqd benchmark` runs it."""
