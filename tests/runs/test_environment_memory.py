"""The high-water mark of the process's memory, held against what a test itself takes."""

import sys
from pathlib import Path

import pytest

from scalegrad.runs.environment import forget_peak, give_back_memory, peak_bytes, resident_bytes

MIB = 2**20
on_linux = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="no /proc/self/clear_refs here")


@on_linux
def test_the_peak_is_that_of_the_work_since_it_was_forgotten():
    bytearray(b"x") * (192 * MIB)  # earlier work, done and gone
    give_back_memory()
    assert forget_peak()
    before = resident_bytes()
    assert peak_bytes() - before < 16 * MIB
    bytearray(b"x") * (64 * MIB)
    assert 60 * MIB < peak_bytes() - before < 96 * MIB


def test_where_the_system_does_not_let_it_that_is_said(monkeypatch):
    class Refuses(type(Path())):
        def write_text(self, *given, **named):
            raise PermissionError(self)

    monkeypatch.setattr(sys.modules["scalegrad.runs.environment"], "Path", Refuses)
    assert not forget_peak()
    monkeypatch.setattr(sys, "platform", "win32")
    give_back_memory()  # no C library to ask there
