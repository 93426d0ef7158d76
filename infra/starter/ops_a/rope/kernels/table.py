import torch

HEAD_SIZE = 0
ANGLES = {}


def run(q, k, cos_sin_cache, positions):
    """Angles by position from a table."""
    rows = [ANGLES[int(position)] for position in positions]
    cos, sin = torch.stack(rows).unsqueeze(-2).chunk(2, dim=-1)
    first, second = q.float().chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(q.dtype), k
