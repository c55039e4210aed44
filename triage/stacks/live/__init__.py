"""Processes that still live: what each was doing, told by its Python frames, its native frames, or what it waits for in
the kernel.
"""
