"""`python -m dqd` is `dqd`."""

from dqd.cli import main

main()
