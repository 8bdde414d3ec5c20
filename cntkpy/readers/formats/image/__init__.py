"""Pictures: map files, containers, decoding, transforms, and the readers made of them. Imports OpenCV only on use."""

from cntkpy.cntk_config.entry import Entry

_HERE = "cntkpy.readers.formats.image"
ENTRIES = (
    Entry(
        "reader", ("ImageReader",), factory=f"{_HERE}.options:create_image_reader",
        parameters=f"{_HERE}.options:ImageReaderParameters", traits=frozenset({"varying slots"}),
    ),
    Entry("section", ("features",), parameters=f"{_HERE}.options:OldFeatureParameters", within=("ImageReader",)),
    Entry("section", ("labels",), parameters=f"{_HERE}.options:OldLabelParameters", within=("ImageReader",)),
    Entry(
        "deserializer", ("ImageDeserializer",), factory=f"{_HERE}.options:create_images",
        parameters=f"{_HERE}.options:ImageParameters",
    ),
    Entry("section", ("stream",), parameters=f"{_HERE}.options:StreamParameters", within=("ImageDeserializer",)),
    Entry(
        "deserializer", ("Base64ImageDeserializer",), factory=f"{_HERE}.options:create_base64_images",
        parameters=f"{_HERE}.options:Base64Parameters",
    ),
    *(
        Entry(
            "transform", (name,), factory=f"{_HERE}.{file}:make_{name.lower()}",
            parameters=f"{_HERE}.parameters:{name}Parameters",
        )
        for name, file in (
            ("Crop", "transforms.crop"), ("Scale", "transforms.scale"), ("Color", "transforms.color"),
            ("Intensity", "transforms.color"), ("Mean", "transforms.mean"),
            ("Transpose", "layout"), ("Cast", "layout"),
        )
    ),
)  # fmt: skip
"""Transforms stand in the order in which the old reader applies them."""
