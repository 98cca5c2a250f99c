"""Respondents behind an OpenAI-compatible chat completions endpoint: ``http/<model>``."""

from belie.respondents.http.respondent import HttpRespondent, open_http

__all__ = ["HttpRespondent", "open_http"]
