"""The report: one HTML file from run folders. ``page`` puts it together; nothing here asks a model or changes a run."""

from belie.report.page import Report, make_report

__all__ = ["Report", "make_report"]
