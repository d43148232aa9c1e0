"""A real verl GRPO training on a CPU, recorded and replayed: the library's showcase."""
