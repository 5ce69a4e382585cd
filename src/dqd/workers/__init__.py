"""Where evaluations happen outside the compiled program: plain functions, pools of processes, Dask clusters."""
