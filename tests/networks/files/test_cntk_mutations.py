"""Damaged model files of CNTK never give anything but a network or an error that names the file."""

import cntk_mutations as m
import pytest

from networks.files.cntk_binary.load import read_cntk


def test_the_files_are_whole_at_first():
    for content in m.originals():
        assert len(read_cntk(content).nodes) >= 15


@pytest.mark.thorough
def test_damaged_files():
    outcome = m.try_mutations(500, memory=True)
    assert min(outcome.values()) > 20
