"""Running a configuration: dispatch, context, log, progress, workers."""
