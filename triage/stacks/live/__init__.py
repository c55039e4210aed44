"""Live processes: what each does, from its Python frames, its native frames, or what it waits for in the kernel."""
