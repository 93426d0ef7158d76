import torch


def run(A, B):
    """C.T = B @ A.T: the weight is read along its rows."""
    return torch.mm(B, A.T).T.contiguous()
