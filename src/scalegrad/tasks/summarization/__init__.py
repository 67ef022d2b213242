"""Abstractive summarisation: BertSum and any other summariser, with MLE, unlikelihood and ScaleGrad.

`corpora` the data, `formats` what models read, `training` both stages, `writing` summaries, `selection` what is chosen
on the validation set, `scoring` and `evaluation` the figures, `recipes` the settings by name.
"""
