"""Steps of the Llama family in C: the kernels, and what compiles and loads them."""
