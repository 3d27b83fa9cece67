"""Label Studio: its server, its projects and tasks, and what annotators answered."""

from .client import LabelStudioError, Project, Server
from .tasks import Subject

__all__ = ["LabelStudioError", "Project", "Server", "Subject"]
