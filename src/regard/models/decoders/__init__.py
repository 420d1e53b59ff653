"""Decoders: all steps at once if the mechanism allows it, and one step at a time.

`DECODERS` maps the names that configurations use to the functions that build them. A decoder is one file (a class with
`begin`, `advance` and, to be exported, `export_source`, `export_state` and `assemble`; a function `build_…`) and one
line here.
"""

DECODERS = {
    "bahdanau": "regard.models.decoders.recurrent:build_bahdanau",
    "luong": "regard.models.decoders.recurrent:build_luong",
    "plain": "regard.models.decoders.recurrent:build_plain",
    "transformer": "regard.models.decoders.transformer:build_transformer",
    "convolutional": "regard.models.decoders.convolutional:build_convolutional",
}
