"""Words for what is wrong with a field of a UCI text file."""

from __future__ import annotations

import numpy as np

from cntkpy.readers.errors import DataError
from cntkpy.readers.kernels import text_codes as codes

from .columns import Columns
from .fallback import Trouble

_SEPARATORS = ",;|"


def wrong_field(trouble: Trouble, text: np.ndarray, columns: Columns, path: str, line: int) -> DataError:
    """Return the error of a field.

    Args:
        trouble: The field, with places in the text.
        text: Some lines of the file, uint8[n].
        columns: The columns of the file.
        path: The file.
        line: The line of the field, from 1.
    """
    c, code, begin, end, column = columns, trouble.code, trouble.begin, trouble.end, trouble.column
    line_start = text[:begin].tobytes().rpartition(b"\n")[2]
    excerpt = text[begin : min(end, begin + 60)].tobytes().decode("utf-8", "replace")
    place = _place(line_start, path, line)
    if code == codes.UNKNOWN_LABEL:
        message = f"label found in data not specified in label mapping file: {excerpt} ({place})"
        hint = "run action=createLabelMap again, after removing the old file, or mend the data"
    elif code == codes.MISSING:
        needed = max(c.first_feature + c.dim, c.first_label + c.label_dim if c.kind != "none" else 0)
        message = f"the line has {column} fields, at least {needed} are needed ({place.rpartition(',')[0]})"
        hint = "features are the fields start .. start+dim-1 of their section, counted from 0; so are labels"
    elif code == codes.TEXT_IN_FEATURES:
        message = f"'{excerpt}' is not a number, but field {column} is a feature ({place})"
        hint = "fields are counted from 0; check start and dim of the features, customDelimiter, customDecimalPoint"
    else:
        message = f"'{excerpt}' is not a number, and field {column} is not a label ({place})"
        hint = f"labels are the fields from {c.first_label} on, counted from 0; check start of the labels"
        if c.kind == "regression" and c.first_label <= column < c.first_label + c.label_dim:
            message = f"the label '{excerpt}' is not a number ({place})"
            hint = "labelType=regression has numbers as labels; for names use labelType=category"
    behind = text[begin:].tobytes().partition(b"\n")[0]
    field = line_start + behind if code == codes.MISSING else behind[: end - begin]
    return DataError(message, path=path, line=line, hint=_other_separator(field, c) or hint)


def infinite_field(text: np.ndarray, begin: int, end: int, path: str, line: int) -> str:
    """Return the warning of a number which the type of the values cannot hold; arguments as of `wrong_field`."""
    line_start = text[:begin].tobytes().rpartition(b"\n")[2]
    excerpt = text[begin : min(end, begin + 60)].tobytes().decode("utf-8", "replace")
    return f"'{excerpt}' is too large for its type, and read as infinite ({_place(line_start, path, line)})"


def _place(line_start: bytes, path: str, line: int) -> str:
    return f"{path}, line {line}, column {len(line_start.decode('utf-8', 'replace')) + 1}"


def _other_separator(text: bytes, columns: Columns) -> str:
    """Return a hint if a separator other than blanks is between the fields of a text."""
    separator = next((separator for separator in _SEPARATORS if separator.encode() in text), "")
    if not separator or columns.delimiter or separator == columns.decimal_point:
        return ""
    point = ', or customDecimalPoint="," if it is the decimal point' if separator == "," else ""
    return f"if '{separator}' is between fields, write customDelimiter=\"{separator}\"{point}"
