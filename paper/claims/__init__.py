"""The paper's claims, each with a verdict computed from its own tables and from stored results.

`python -m paper.claims FOLDER` reads the results in a folder, docs/results or one that `python -m paper
--out` filled, and writes claims.md beside them.
"""
