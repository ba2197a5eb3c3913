"""The engine over HTTP: metrics, health, and a live page of the cluster.

    batches ─► inbox ─► live (a thread) ─► picture, recent, timeline, state_times ─► push ─► browsers
                          counted_pages: the state's pages in one summary

``site`` puts it together, and ``observed_site`` for a shadow's bus without an engine. ``routes`` and the room ``web``
serve it, ``health`` answers supervisors, and ``past`` says what the page asks of the log. In this room "the page" is
the live page, unless it is called a page of the state.
"""
