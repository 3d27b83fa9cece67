"""Optional parts of coaudit, and how they are installed."""


def pip_command(*extras: str) -> str:
    """What adds extras to a coaudit that is installed, from a clone or otherwise: pip keeps it."""
    return f"pip install 'coaudit[{','.join(extras)}]'"
