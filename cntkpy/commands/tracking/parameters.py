"""The section `tracking` of the top level."""

from __future__ import annotations

from cntkpy.cntk_config.declare import PATH, SECTION, TEXT, Declared, Parameter, array


class TrackingParameters(Declared):
    """`tracking` of the top level: where the run is tracked, besides its log."""

    type = Parameter(
        "type",
        array(TEXT),
        own=True,
        help="tensorboard, mlflow, or what an installed package offers; several with `:`.",
    )
    folder = Parameter("folder", PATH, default="tensorboard", own=True, help="Folder of TensorBoard's event files.")
    uri = Parameter(
        "uri", TEXT, default="", own=True, help="MLflow's tracking server or store; MLFLOW_TRACKING_URI by default."
    )
    experiment = Parameter("experiment", TEXT, default="cntkpy", own=True, help="MLflow's experiment.")
    name = Parameter("name", TEXT, default="", own=True, help="Name of the run.")
    tags = Parameter(
        "tags", SECTION, default=None, own=True, help="Texts by name, which the tracker keeps with the run."
    )
    options = Parameter(
        "options", SECTION, default=None, own=True, help="Texts by name, for trackers of other packages."
    )
