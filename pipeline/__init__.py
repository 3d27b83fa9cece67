"""The verbs: ingest, judge, annotate, analyze, report, follow; what they share; the command line."""

__all__: list[str] = []
