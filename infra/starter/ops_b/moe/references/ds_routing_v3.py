"""FP8 block-scaled mixture of experts with DeepSeek-V3's bias-corrected, group-limited routing."""

import torch

BLOCK = 128
TOP_K = 8
NUM_GROUPS = 8
TOP_GROUPS = 4


def route(logits, bias, scaling):
    """Sigmoid scores; groups ranked by their two best biased scores; weights from unbiased scores -> dense [T, E]."""
    scores = torch.sigmoid(logits)
    biased = scores + bias
    grouped = biased.view(len(logits), NUM_GROUPS, -1)
    best = grouped.topk(2, dim=2).values.sum(2).topk(TOP_GROUPS, dim=1).indices
    kept = torch.zeros_like(grouped[:, :, 0], dtype=torch.bool).scatter_(1, best, True)
    pruned = grouped.masked_fill(~kept.unsqueeze(2), -torch.inf).flatten(1)
    chosen = pruned.topk(TOP_K, dim=1).indices
    weights = torch.zeros_like(scores).scatter_(1, chosen, scores.gather(1, chosen))
    return weights / (weights.sum(1, keepdim=True) + 1e-20) * scaling


def dequantise(weight, scale, work):
    """One expert's [N, K] weight times its [N/128, K/128] block scales."""
    rows, cols = scale.shape
    blocks = weight.to(work).view(rows, BLOCK, cols, BLOCK)
    return (blocks * scale.to(work).view(rows, 1, cols, 1)).view(weight.shape)


@torch.no_grad()
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
    """Works in at least fp32, in fp64 when the logits are fp64; experts outside the local range add nothing."""
    work = torch.promote_types(routing_logits.dtype, torch.float32)
    tokens, hidden = hidden_states.shape
    weights = route(routing_logits.to(work), routing_bias.to(work), routed_scaling_factor)
    scale = hidden_states_scale.to(work).t().unsqueeze(2)
    x = (hidden_states.to(work).view(tokens, -1, BLOCK) * scale).view(tokens, hidden)
    output = torch.zeros(tokens, hidden, dtype=work, device=x.device)
    for local in range(gemm1_weights.shape[0]):
        share = weights[:, local_expert_offset + local]
        rows = share.nonzero().squeeze(1)
        if len(rows) == 0:
            continue
        up, gate = (x[rows] @ dequantise(gemm1_weights[local], gemm1_weights_scale[local], work).t()).chunk(2, dim=1)
        down = dequantise(gemm2_weights[local], gemm2_weights_scale[local], work)
        output[rows] += share[rows].unsqueeze(1) * ((torch.nn.functional.silu(gate) * up) @ down.t())
    return output.to(torch.float64 if work == torch.float64 else torch.bfloat16)
