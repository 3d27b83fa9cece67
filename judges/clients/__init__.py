"""What asks a model: the protocol, and a client for each kind of endpoint and engine."""

from .protocol import Client, Complete, Message, Offer, Parameters, Question, Reply

__all__ = ["Client", "Complete", "Message", "Offer", "Parameters", "Question", "Reply"]
