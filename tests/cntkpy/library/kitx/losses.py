import cntk as C
from cntk.internal import sanitize_input, typemap


@typemap
def focal_loss(output, target, gamma=2.0, name=""):
    output, target = sanitize_input(output), sanitize_input(target)
    probability = C.reduce_sum(C.softmax(output) * target)
    return C.alias(-C.pow(1 - probability, gamma) * C.log(probability), name)


def generalised_robust_barron_loss(prediction, target, a=1.5, c=1.0, name=""):
    @C.BlockFunction("Barron", name)
    def inner(p, t):
        square = C.square((p - t) / c) / abs(a - 2)
        return C.reduce_sum(abs(a - 2) / a * (C.pow(square + 1, a / 2) - 1))

    return inner(prediction, target)


def cross_entropy_with_sampled_softmax(hidden, target, num_samples, allow_duplicates, weights, name=""):
    b = C.Parameter((weights.shape[0], 1), init=0, name="b")
    W = C.Parameter((weights.shape[0], hidden.shape[0]), init=C.glorot_uniform(), name="W")
    inclusion = C.random_sample_inclusion_frequency(weights, num_samples, allow_duplicates)
    selector = C.random_sample(weights, num_samples, allow_duplicates)
    log_prior = C.log(inclusion)
    Ws = C.times(selector, W)
    zs = C.times_transpose(Ws, hidden) + C.times(selector, b) - C.times_transpose(selector, log_prior)
    wt = C.times(target, W, name="target_weights")
    zt = C.times_transpose(wt, hidden) + C.times(target, b) - C.times_transpose(target, log_prior)
    loss = C.reduce_log_sum_exp(C.splice(zt, zs)) - zt
    z = C.times_transpose(W, hidden) + b
    return C.combine([z, loss])
