"""What a logged field holds: the paths to it, its value as text, name, number or time, and what it says."""

__all__: list[str] = []
