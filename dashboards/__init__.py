"""Streamlit pages over the store, read-only."""

__all__: list[str] = []
