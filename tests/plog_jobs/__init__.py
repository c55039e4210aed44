"""Composed HCCL jobs as the plog folders of their processes, and the answers that the files allow."""
