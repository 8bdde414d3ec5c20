"""The ways in: an `SGD` section, programs of CNTK 2, searches of rates and sizes."""
