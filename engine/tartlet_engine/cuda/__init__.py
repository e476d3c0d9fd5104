"""What runs on NVIDIA GPUs: Triton kernels over the pages, CUDA graphs of decode steps, and sampling on the device."""
