"""Speed and memory, measured side by side in one run: `python -m benchmarks NAME`."""

# Each is a module here with a `command`.
BENCHMARKS = {
    "cpu": "The losses on a CPU beside plain cross-entropy and the dense formulation.",
    "gpu": "The losses on a GPU beside every plain cross-entropy people use, and what they must show.",
    "throughput": "Training steps with the framework's own loss, and ours attached: MLE, ScaleGrad, unlikelihood.",
    "decoding": "Decoding with our cache, which has room for the whole text, beside the library's own.",
    "metrics": "Rep/l and Rep-n beside loops in plain Python.",
    "plot": "Time and memory over vocabulary and sequence length, drawn from a stored GPU run.",
}
