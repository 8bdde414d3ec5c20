"""cntk.logging.progress_print: progress writers."""

from . import ProgressPrinter, TensorBoardProgressWriter, log_number_of_parameters

__all__ = ["ProgressPrinter", "TensorBoardProgressWriter", "log_number_of_parameters"]
