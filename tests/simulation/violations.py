"""The violations that checkers report to a test."""


class Found(list[str]):
    """The invariants violated so far."""

    def violated(self, invariant: str, what: str) -> None:
        self.append(invariant)

    def row(self, who: str, what: str, more: str) -> None: ...
