import torch


def run(A, B):
    """Widened copies, kept, each twice as tall as the one before."""
    copies = [B.double()]
    while copies:
        copies.append(copies[-1].repeat(2, 1))
    return (A.double() @ copies[0].T).to(A.dtype)
