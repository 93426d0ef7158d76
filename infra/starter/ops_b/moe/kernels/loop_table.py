"""FP8 block-scaled MoE: per-expert loop, weights widened by a 256-entry table, index_add."""

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


TABLE = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float()


def widen(weight, scale):
    """[N, K] e4m3 times block scales -> fp32 by table look-up."""
    rows, cols = scale.shape
    values = TABLE.index_select(0, weight.view(torch.uint8).int().flatten())
    return values.view(rows, BLOCK, cols, BLOCK).mul_(scale.view(rows, 1, cols, 1)).view(weight.shape)


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
    """Loop over the experts that were chosen here; one index_add each."""
    weights, chosen = route(routing_logits, routing_bias, routed_scaling_factor)
    tokens, hidden = hidden_states.shape
    x = hidden_states.float().view(tokens, -1, BLOCK) * hidden_states_scale.t().unsqueeze(2)
    x = x.view(tokens, hidden)
    output = torch.zeros(tokens, hidden)
    local = chosen - local_expert_offset
    for expert in local.unique().tolist():
        if not 0 <= expert < gemm1_weights.shape[0]:
            continue
        rows, slots = (local == expert).nonzero(as_tuple=True)
        up_gate = x[rows] @ widen(gemm1_weights[expert], gemm1_weights_scale[expert]).t()
        up, gate = up_gate.chunk(2, dim=1)
        inner = torch.nn.functional.silu(gate).mul_(up).mul_(weights[rows, slots].unsqueeze(1))
        output.index_add_(0, rows, inner @ widen(gemm2_weights[expert], gemm2_weights_scale[expert]).t())
    return output.to(torch.bfloat16)
