"""PyTorch's Flight Recorder: dumps read without torch and without running anything in them, compared across ranks."""
