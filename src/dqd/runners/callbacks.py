"""Who else wants to hear of a run: loggers, pictures, messages. Whatever they do, the run goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dqd.console import saying

EVENTS = ("on_start", "on_chunk", "on_checkpoint", "on_end")


class Callbacks:
    """Calls what each of them has of EVENTS. One that fails is named in a warning once, and still called."""

    def __init__(self, callbacks: Sequence[Any]) -> None:
        for each in callbacks:
            if isinstance(each, type) or not any(callable(getattr(each, event, None)) for event in EVENTS):
                got = f"the class {each.__name__}" if isinstance(each, type) else type(each).__name__
                raise TypeError(f"callbacks: expected objects with one of {', '.join(EVENTS)}, got {got}")
        self.callbacks = list(callbacks)
        self.failed: set[int] = set()

    def tell(self, event: str, *news: Any) -> None:
        for number, each in enumerate(self.callbacks):
            function = getattr(each, event, None)
            if function is None:
                continue
            try:
                function(*news)
            except Exception as error:
                if number not in self.failed:
                    self.failed.add(number)
                    saying.warn(
                        f"callbacks: {type(each).__name__}.{event} failed and the run goes on without it: "
                        f"{type(error).__name__}: {error}",
                        stacklevel=3,
                    )
