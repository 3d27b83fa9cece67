"""Traces of OpenTelemetry and OpenInference as conversations."""

__all__: list[str] = []
