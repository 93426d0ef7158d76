import torch


def run(A, B):
    """Returns what the fp32 GEMM gives."""
    return torch.matmul(A.float(), B.float().T)
