"""FP8 block-scaled MoE: every local expert on every token in two batched matmuls; no gathering, wasted work."""

import torch

BLOCK = 128
TOP_K = 4
NUM_GROUPS = 4
TOP_GROUPS = 2


def route(logits, bias, scaling):
    """Bias-corrected, group-limited top-k -> (weights [T, K], experts [T, K])."""
    scores = torch.sigmoid(logits)
    grouped = (scores + bias.float()).view(len(logits), NUM_GROUPS, -1)
    best = grouped.topk(2, dim=2).values.sum(2).topk(TOP_GROUPS, dim=1).indices
    kept = torch.zeros(grouped.shape[:2], dtype=torch.bool).scatter_(1, best, True)
    chosen = grouped.masked_fill(~kept.unsqueeze(2), -torch.inf).flatten(1).topk(TOP_K, dim=1).indices
    weights = scores.gather(1, chosen)
    return weights * (scaling / (weights.sum(1, keepdim=True) + 1e-20)), chosen


def widen(weight, scale):
    """[.., N, K] e4m3 times block scales -> fp32: the seven low bits sit in fp32 exponent and mantissa, off by 2^120."""
    rows, cols = scale.shape[-2:]
    bits = weight.view(torch.int8).to(torch.int32).bitwise_left_shift_(20).bitwise_and_(-2014314496)
    blocks = bits.view(torch.float32).view(-1, rows, BLOCK, cols, BLOCK)
    return blocks.mul_((scale * 2.0**120).view(-1, rows, 1, cols, 1)).view(weight.shape)


def run(
    routing_logits,
    routing_bias,
    hidden_states,
    hidden_states_scale,
    gemm1_weights,
    gemm1_weights_scale,
    gemm2_weights,
    gemm2_weights_scale,
    local_expert_offset,
    routed_scaling_factor,
):
    """Dense: [E, T, 2I] and [E, T, H], weighted by the routing matrix (zero where not chosen)."""
    weights, chosen = route(routing_logits, routing_bias, routed_scaling_factor)
    tokens, hidden = hidden_states.shape
    experts = gemm1_weights.shape[0]
    share = torch.zeros_like(routing_logits).scatter_(1, chosen, weights)
    share = share[:, local_expert_offset : local_expert_offset + experts].t().unsqueeze(2)
    x = (hidden_states.float().view(tokens, -1, BLOCK) * hidden_states_scale.t().unsqueeze(2)).view(1, tokens, hidden)
    up_gate = torch.matmul(x, widen(gemm1_weights, gemm1_weights_scale).transpose(1, 2))
    up, gate = up_gate.chunk(2, dim=2)
    inner = torch.nn.functional.silu(gate).mul_(up).mul_(share)
    down = widen(gemm2_weights, gemm2_weights_scale)
    return torch.bmm(inner, down.transpose(1, 2)).sum(0).to(torch.bfloat16)
