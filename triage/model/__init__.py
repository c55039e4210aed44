"""The frozen dataclasses that cross rooms, one module per owner."""
