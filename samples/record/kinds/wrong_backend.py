"""The job requests NCCL with a build of torch that has none, on all ranks."""

import torch.distributed as dist


def main() -> None:
    """Join the group."""
    print("initialising torch.distributed with backend nccl", flush=True)
    dist.init_process_group("nccl")


if __name__ == "__main__":
    main()
