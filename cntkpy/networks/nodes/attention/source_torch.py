"""Small functions that the written module has where PyTorch has no function of that meaning."""

from __future__ import annotations

HELPERS: dict[str, str] = {
    "attention_weights": '''\
def attention_weights(weights: Tensor, keys: Tensor, query: Tensor, mask: Tensor) -> Tensor:
    """Return, for each step of the query, shares of the steps of the keys that sum to 1."""
    scores = torch.tanh(keys[:, None] + query[:, :, None]) @ weights
    return torch.softmax(scores.masked_fill(~mask[:, None], -torch.inf), dim=-1)[..., None]''',
    "additive_attention": '''\
def additive_attention(
    weights: Tensor, keys: Tensor, values: Tensor, query: Tensor, mask: Tensor
) -> Tensor:
    """Return means of the values of all steps, weighted by how well keys go with the query."""
    shares = attention_weights(weights, keys, query, mask)[..., 0]
    return shares @ values.masked_fill(~mask[..., None], 0.0)''',
    "dot_product_attention": '''\
def dot_product_attention(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Return means of the values of all steps (batch, steps, heads, elements) by attention."""
    query, keys, values = (x.transpose(1, 2) for x in (query, keys, values))
    values = values.masked_fill(~mask[:, None, :, None], 0.0)
    attended = F.scaled_dot_product_attention(
        query, keys, values, attn_mask=mask[:, None, None], scale=1.0
    )
    return attended.transpose(1, 2)''',
}
