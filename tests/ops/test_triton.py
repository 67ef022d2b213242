"""The code of the Triton kernels itself, in Triton's interpreter: a machine without a GPU checks it too."""

from importlib.util import find_spec

import pytest

from tests.ops import kernel_run


@pytest.mark.slow
@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed; it exists for Linux")
@pytest.mark.parametrize("group", kernel_run.GROUPS, ids=kernel_run.name_of)
def test_kernels_in_the_interpreter(group):
    kernel_run.finish(kernel_run.start("cpu", group))


def test_every_check_runs():
    assert {name for _, names in kernel_run.GROUPS for name in names} == set(kernel_run.CHECKS)
