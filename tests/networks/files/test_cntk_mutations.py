"""Damaged model files of CNTK never give anything but a network or an error that names the file."""

import cntk_mutations as m
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.files.cntk_binary.load import read_cntk


def test_the_files_are_whole_at_first():
    for content in m.originals():
        assert len(read_cntk(content).nodes) >= 15


@pytest.mark.thorough
def test_damaged_files():
    outcome = m.try_mutations(500, memory=True)
    assert min(outcome.values()) > 20


@pytest.mark.thorough
def test_damaged_files_of_each_operation():
    outcome = m.try_mutations(2000, files=m.each_operation())
    assert min(outcome.values()) > 20


def test_windows_without_sizes_are_an_error():
    """Found by mutation: it was an IndexError."""
    with pytest.raises(UserError, match=r"m\.dnn.*MaxUnpooling 'F'.*has no values"):
        read_cntk(m.one_function(58, 2, 1, unpoolingWindowShape=m.v.Shape(())), "m.dnn")
