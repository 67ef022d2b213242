"""For every test: one thread. Tensors here are tiny, and the workers of a parallel run share the cores."""

import torch

torch.set_num_threads(1)
