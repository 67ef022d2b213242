"""A run's folder: what was asked, what happened and what came out, in files that are whole or not there."""

from scalegrad.runs.atomic import check_writable_folder, replacing, write_json, write_lines, write_text
from scalegrad.runs.environment import environment, hardware, versions
from scalegrad.runs.folder import Run, flat_config
from scalegrad.runs.lock import only_here
from scalegrad.runs.samples import samples_name

__all__ = [
    "Run",
    "check_writable_folder",
    "environment",
    "flat_config",
    "hardware",
    "only_here",
    "replacing",
    "samples_name",
    "versions",
    "write_json",
    "write_lines",
    "write_text",
]
