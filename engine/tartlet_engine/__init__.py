"""The model side of Tartlet: weights, KV pages, batching, sampling. Knows nothing of Wasm or HTTP."""
