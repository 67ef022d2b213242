"""A run's folder: what was asked, what happened and what came out, in files that are whole or not there."""

from scalegrad.runs.atomic import check_writable_folder, replacing, write_json, write_lines, write_text
from scalegrad.runs.environment import environment, hardware, versions
from scalegrad.runs.folder import Places, Run, flat_config, same_setting
from scalegrad.runs.jobs import Job, JobsFailed, run_jobs, run_name
from scalegrad.runs.lock import only_here, take_lock
from scalegrad.runs.rows import Row, read_rows, rows_of, write_rows
from scalegrad.runs.samples import samples_name

__all__ = [
    "Job",
    "JobsFailed",
    "Places",
    "Row",
    "Run",
    "check_writable_folder",
    "environment",
    "flat_config",
    "hardware",
    "only_here",
    "read_rows",
    "replacing",
    "rows_of",
    "run_jobs",
    "run_name",
    "same_setting",
    "samples_name",
    "take_lock",
    "versions",
    "write_json",
    "write_lines",
    "write_rows",
    "write_text",
]
