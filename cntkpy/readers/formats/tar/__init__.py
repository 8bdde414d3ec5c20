"""Tar archives of training data (shards): members with the same name but for its ending are a sample."""

from cntkpy.cntk_config.entry import Entry

_PARAMETERS = "cntkpy.readers.formats.tar.parameters"
ENTRIES = (
    Entry(
        "deserializer",
        ("TarDeserializer",),
        factory=f"{_PARAMETERS}:create_tar",
        parameters=f"{_PARAMETERS}:TarParameters",
        example=(
            "deserializers = ([ type = TarDeserializer ; file = (train-000.tar:train-001.tar) ; input = [ "
            "x = [ member = jpg:png ; transforms = ([ type = Scale ; width = 32 ; height = 32 ; channels = 3 ]:"
            "[ type = Transpose ]) ] ; y = [ member = cls ; dim = 10 ; format = sparse ] ] ])"
        ),
    ),
)
