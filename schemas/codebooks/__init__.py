"""The codebooks that ship with coaudit."""

__all__: list[str] = []
