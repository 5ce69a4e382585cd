"""Evaluations elsewhere: plain functions, pools of processes, Dask clusters."""
