"""Measure the CPU time of each layer: of named functions, without the functions of other layers that they call."""

import contextlib
import functools
import importlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

REST = "the rest"


class Layers:
    """The CPU seconds of each layer.

    ``places`` names each layer's functions as ``module:name`` in the modules that call them. If one layer calls
    another, the time counts for the inner one.
    """

    def __init__(self, places: Mapping[str, Sequence[str]]) -> None:
        self._places = places
        self._open: list[str] = []
        self._since_s = 0.0
        self.spent_s: defaultdict[str, float] = defaultdict(float)

    @contextlib.contextmanager
    def measured(self) -> Iterator[dict[str, float]]:
        """Measure until the end of the block. Time that belongs to no layer is ``REST``."""
        self.spent_s = defaultdict(float)
        with contextlib.ExitStack() as patches:
            for layer, places in self._places.items():
                for place in places:
                    patches.enter_context(self._patched(layer, place))
            self._enter(REST)
            try:
                yield self.spent_s
            finally:
                self._leave()

    @contextlib.contextmanager
    def _patched(self, layer: str, place: str) -> Iterator[None]:
        module, _, path = place.partition(":")
        *owners, name = path.split(".")
        owner = functools.reduce(getattr, owners, importlib.import_module(module))
        if not hasattr(owner, name):
            raise LookupError(f"layer {layer!r}: there is no {place} any more; name what does its work now")
        inner = getattr(owner, name)
        setattr(owner, name, self._timed(layer, inner))
        try:
            yield
        finally:
            setattr(owner, name, inner)

    def _timed(self, layer: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(inner)
        def timed(*given: Any, **named: Any) -> Any:
            self._enter(layer)
            try:
                made = inner(*given, **named)
                # Exhaust a generator here, because otherwise it would work after its clock has stopped.
                return iter(list(made)) if isinstance(made, Iterator) else made
            finally:
                self._leave()

        return timed

    def _enter(self, layer: str) -> None:
        self._charge()
        self._open.append(layer)

    def _leave(self) -> None:
        self._charge()
        self._open.pop()

    def _charge(self) -> None:
        now_s = time.process_time()
        if self._open:
            self.spent_s[self._open[-1]] += now_s - self._since_s
        self._since_s = now_s
