"""Criteria of rankings against the definition, document by document."""

import numpy as np
import pytest

SIZES = [3, 1, 4]


def by_hand(gain, score, query):
    """(LambdaRank, its gradient, NDCG1Eval) of documents in order."""
    value, first, slope, groups = 0.0, 0.0, np.zeros_like(score), []
    for i in range(len(query)):
        if i == 0 or query[i] != query[i - 1]:
            groups.append([])
        groups[-1].append(i)
    for group in groups:
        ranked = sorted(group, key=lambda i: (-score[i], gain[i]))
        rank = {i: ranked.index(i) for i in group}
        ideal = sum(gain[i] / np.log(2 + place) for place, i in enumerate(group))
        if ideal == 0:
            continue
        value += sum(gain[i] / np.log(2 + rank[i]) for i in group) / ideal
        first += gain[ranked[0]] / gain[group[0]] if gain[group[0]] else 0
        for a, i in enumerate(group):
            for j in group[a + 1 :]:
                if gain[i] == gain[j] or gain[i] <= gain[group[-1]]:
                    continue
                one, other = np.log(2 + rank[i]), np.log(2 + rank[j])
                change = abs((gain[i] - gain[j]) * (one - other) / (one * other) / ideal)
                step = -1 / (1 + np.exp(score[i] - score[j])) * change
                slope[i] += step
                slope[j] -= step
    count, queries = len(gain), len(groups)
    return (1 - value / queries) * 100 * count, slope, first / queries * 100 * count


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (1, 2, 3))])
def test_rankings(helpers, seed):
    random = np.random.default_rng(seed)
    gain = np.concatenate([np.sort(random.integers(0, 4, n))[::-1] for n in SIZES]).astype(float)
    query = np.repeat([7.0, 3.0, 7.0], SIZES)
    x = random.normal(size=(len(gain), 2))
    s = helpers.Sketch()
    g, q = s.input("g", 1), s.input("q", 1)
    w = s.parameter("w", 1, 2)
    score = s("Times", w, s.input("x", 2))
    s("LambdaRank", g, score, q, name="loss")
    s("NDCG1Eval", g, score, q, name="first")
    weight = w.matrix().copy()
    batch = helpers.Batch({"g": gain.reshape(1, -1, 1), "q": query.reshape(1, -1, 1), "x": x[None]})
    loss, slope, first = by_hand(gain, x @ weight[0], query)
    found = helpers.run(s.network, ["loss", "first"], batch)
    np.testing.assert_allclose(found["loss"], [loss], rtol=1e-12)
    np.testing.assert_allclose(found["first"], [first], rtol=1e-12)
    _, gradients = helpers.gradients(s.network, "loss", batch)
    np.testing.assert_allclose(gradients["w"].reshape(-1), slope @ x, rtol=1e-10, atol=1e-12)
