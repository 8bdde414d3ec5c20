"""Functions have the backend of `cntkpy.training`."""

import cntkpy.training  # noqa: F401
