"""Abstractive summarisation: BertSum and any other summariser, with MLE, unlikelihood and ScaleGrad.

`corpora` the data, `formats` what models read, `training` both stages, `writing` summaries, `scoring` and `evaluation`
the figures and what is chosen on the validation set, `report` runs side by side, `recipes` the settings by name.
"""
