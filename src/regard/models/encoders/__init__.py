"""Encoders: from sources to the states that decoders attend to.

`ENCODERS` maps the names that configurations use to the functions that build them: an encoder is one file and one line
here. The encoders of images and sound are built by their tasks.
"""

ENCODERS = {
    "recurrent": "regard.models.encoders.recurrent:build_recurrent",
    "transformer": "regard.models.encoders.transformer:build_transformer",
    "convolutional": "regard.models.encoders.convolutional:build_convolutional",
}
