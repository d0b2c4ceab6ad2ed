"""Reference implementations: float64 NumPy loops, one paper equation each.

They follow the papers literally and are not optimized. Shapes are those of the
library: (B, T, N, H) heads, (B, N, T, S) masks and weights.
"""

import math

import numpy as np


def scaled_dot_attention(query, key, value, mask=None, bias=None, scale=None):
    """softmax(scale Q K^T + bias) V over the visible keys, one row at a time.

    Vaswani et al. 2017, sec. 3.2.1, eq. 1, and for fewer key heads than query
    heads Ainslie et al. 2023, sec. 2.2. Fully masked rows are zeros.

    Args:
        query: (B, T, N, H).
        key: (B, S, K, H), K dividing N.
        value: (B, S, K, W).
        mask: bool broadcastable to (B, N, T, S).
        bias: broadcastable to (B, N, T, S), added to the scores.
        scale: float, default 1 / sqrt(H).

    Returns:
        Float64 (B, T, N, W) and the weights, float64 (B, N, T, S).
    """
    query, key, value = (_float64(x) for x in (query, key, value))
    batch, queries, heads, width = query.shape
    keys, key_heads = key.shape[1:3]
    scale = 1 / math.sqrt(width) if scale is None else scale
    grid = batch, heads, queries, keys
    mask = np.broadcast_to(True if mask is None else mask, grid)
    bias = np.broadcast_to(0.0 if bias is None else _float64(bias), grid)
    output = np.zeros((batch, queries, heads, value.shape[-1]))
    weights = np.zeros(grid)
    for b, n, t in np.ndindex(batch, heads, queries):
        shared = n // (heads // key_heads)
        seen = np.flatnonzero(mask[b, n, t])
        if not len(seen):
            continue
        scores = scale * (key[b, seen, shared] @ query[b, t, n])
        weights[b, n, t, seen] = softmax(scores + bias[b, n, t, seen])
        output[b, t, n] = weights[b, n, t, seen] @ value[b, seen, shared]
    return output, weights


def transformer_xl_scores(
    query, key, kernel, content_bias, distance_bias, query_places, key_places
):
    """The four terms of Transformer-XL, one pair of tokens at a time.

    Dai et al. 2019, sec. 3.3: (a) q.k, (b) q.W R, (c) u.k, (d) v.W R, with R
    the sinusoid of the distance, sines first; all over sqrt(H).

    Args:
        query: (B, T, N, H).
        key: (B, S, N, H).
        kernel: (D, N, H). W.
        content_bias: (N, H). u.
        distance_bias: (N, H). v.
        query_places: int (B, T).
        key_places: int (B, S).

    Returns:
        Float64 (B, N, T, S).
    """
    query, key, kernel, u, v = map(
        _float64, (query, key, kernel, content_bias, distance_bias)
    )
    width, heads, size = kernel.shape
    rates = 10_000.0 ** (-np.arange(0, width, 2) / width)
    scores = np.zeros((len(query), heads, query.shape[1], key.shape[1]))
    for b, n, t, s in np.ndindex(*scores.shape):
        angles = float(query_places[b, t] - key_places[b, s]) * rates
        wave = np.concatenate([np.sin(angles), np.cos(angles)])
        relative = wave @ kernel[:, n]
        q, k = query[b, t, n], key[b, s, n]
        terms = q @ k, q @ relative, u[n] @ k, v[n] @ relative
        scores[b, n, t, s] = sum(terms) / math.sqrt(size)
    return scores


def scaled_dot_attention_gradients(
    query, key, value, cotangent, mask=None, bias=None, scale=None
):
    """The gradients of sum(cotangent * Attention(Q, K, V)), in closed form.

    With weights P and output gradient C, of one head:
    dV = P^T C, dP = C V^T, dS = P (dP - rowsum(P dP)), dQ = scale dS K,
    dK = scale dS^T Q. Shared key heads sum over their query heads.

    Args:
        query, key, value, mask, bias, scale: as in `scaled_dot_attention`.
        cotangent: (B, T, N, W).

    Returns:
        Gradients of query, key, value and of the bias (B, N, T, S), float64.
    """
    query, key, value, cotangent = (
        _float64(x) for x in (query, key, value, cotangent)
    )
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    _, weights = scaled_dot_attention(query, key, value, mask, bias, scale)
    for_query, for_key, for_value, for_scores = (
        np.zeros_like(x) for x in (query, key, value, weights)
    )
    for b, n in np.ndindex(*weights.shape[:2]):
        shared = n // (query.shape[2] // key.shape[2])
        p, c = weights[b, n], cotangent[b, :, n]
        for_weights = c @ value[b, :, shared].T
        rows = (p * for_weights).sum(-1, keepdims=True)
        for_scores[b, n] = p * (for_weights - rows)
        for_value[b, :, shared] += p.T @ c
        for_query[b, :, n] = scale * for_scores[b, n] @ key[b, :, shared]
        for_key[b, :, shared] += scale * for_scores[b, n].T @ query[b, :, n]
    return for_query, for_key, for_value, for_scores


def softmax(scores):
    """exp(x_i) / sum_j exp(x_j) of one row."""
    powers = np.exp(_float64(scores) - np.max(scores))
    return powers / powers.sum()


# Scores of a query q and a key k at position p, and their weights. Luong et al.
# 2015, sec. 3.1; Vaswani et al. 2017, eq. 1; Bahdanau et al. 2014, app. A.1.2;
# Graves et al. 2014, eq. 5 and 6.
SCORES = {
    "dot": lambda q, k, p: q @ k,
    "scaled_dot": lambda q, k, p: q @ k / math.sqrt(len(q)),
    "general": lambda q, k, p, w: q @ w @ k,
    "additive": lambda q, k, p, v, w, u: v @ np.tanh(q @ w + k @ u),
    "location": lambda q, k, p, w: (q @ w)[p],
    "cosine": lambda q, k, p, w, c: (
        math.log(1 + math.exp((q @ w + c).item()))
        * (q @ k)
        / (np.linalg.norm(q) * np.linalg.norm(k))
    ),
}


def scored_attention(
    score,
    query,
    key,
    value,
    arrays=(),
    mask=None,
    key_positions=None,
    nearness=None,
):
    """softmax(score) V over the visible keys, one row at a time.

    Args:
        score: name, from `SCORES`.
        query: (B, T, D).
        key: (B, S, D').
        value: (B, S, W).
        arrays: list, the weights of the score.
        mask: bool broadcastable to (B, T, S).
        key_positions: int (B, S), default 0, 1, 2, ...
        nearness: (B, T, S), factor on the weights.

    Returns:
        Float64 (B, T, W) and the weights, float64 (B, T, S).
    """
    query, key, value = (_float64(x) for x in (query, key, value))
    arrays = [_float64(array) for array in arrays]
    grid = *query.shape[:2], key.shape[1]
    mask = np.broadcast_to(True if mask is None else mask, grid)
    positions = _rows(key_positions, grid[0], grid[2])
    weights = np.zeros(grid)
    for b, t in np.ndindex(grid[:2]):
        seen = [s for s in range(grid[2]) if mask[b, t, s]]
        if seen:
            q, function = query[b, t], SCORES[score]
            weights[b, t, seen] = softmax(
                [function(q, key[b, s], positions[b, s], *arrays) for s in seen]
            )
    if nearness is not None:
        weights = weights * nearness
    return np.einsum("bts,bsw->btw", weights, value), weights


def predicted_window(query, arrays, mask, window, key_positions=None):
    """p_t = S sigmoid(v . tanh(q_t W)), and exp(-(s - p_t)^2 / (2 r^2)).

    Luong et al. 2015, sec. 3.2, eq. 9 and 10, with r = D / 2; keys with
    |s - p_t| > D are masked. S is one more than the last position visible to
    the query.

    Args:
        query: (B, T, D).
        arrays: v and W.
        mask: bool (B, T, S).
        window: int. D.
        key_positions: int (B, S), default 0, 1, 2, ...

    Returns:
        Bool (B, T, S), the restricted mask, and the Gaussian, float64
        (B, T, S).
    """
    query = _float64(query)
    vector, matrix = (_float64(array) for array in arrays)
    positions = _rows(key_positions, mask.shape[0], mask.shape[2])
    near, nearness = np.zeros(mask.shape, "bool"), np.zeros(mask.shape)
    for b, t in np.ndindex(mask.shape[:2]):
        length = positions[b, mask[b, t]].max(initial=-1) + 1
        fraction = vector @ np.tanh(query[b, t] @ matrix)
        center = length / (1 + math.exp(-fraction))
        for s, position in enumerate(positions[b]):
            gap = position - center
            near[b, t, s] = mask[b, t, s] and abs(gap) <= window
            nearness[b, t, s] = math.exp(-(gap**2) / (2 * (window / 2) ** 2))
    return near, nearness


def glimpse(images, locations, size, patches):
    """Squares of size, 2 size, 4 size, ... pixels, each as size x size means.

    Mnih et al. 2014, sec. 3.1. Pixels outside the image are 0.

    Args:
        images: (B, height, width, C).
        locations: (B, 2), x and y in [-1, 1] from the left and from the top.
        size: int. Outputs along an edge of each patch.
        patches: int. How many there are.

    Returns:
        Float64 (B, patches, size, size, C).
    """
    images = _float64(images)
    batch, height, width, channels = images.shape
    output = np.zeros((batch, patches, size, size, channels))
    for b, patch, i, j in np.ndindex(output.shape[:4]):
        factor = 2**patch
        x, y = (_float64(locations[b]) + 1) / 2 * (width, height)
        top = math.floor(y - size * factor / 2 + 0.5) + i * factor
        left = math.floor(x - size * factor / 2 + 0.5) + j * factor
        for row in range(top, top + factor):
            for column in range(left, left + factor):
                if 0 <= row < height and 0 <= column < width:
                    output[b, patch, i, j] += images[b, row, column]
        output[b, patch, i, j] /= factor**2
    return output


def visible(
    batch,
    queries,
    keys,
    query_positions=None,
    key_positions=None,
    query_order=None,
    key_order=None,
    query_segment_ids=None,
    key_segment_ids=None,
    attention_mask=None,
    causal=False,
    strict=False,
    window=None,
    heads=1,
):
    """The rule of `keras_attn.ops.Visibility`, one query and key at a time.

    Args:
        batch, queries, keys: int. B, T and S.
        query_positions, key_positions: (B, T) and (B, S), -1 = no token;
            default 0, 1, 2, ...
        query_order, key_order: what `causal` compares; default the positions.
        query_segment_ids, key_segment_ids: (B, T) and (B, S).
        attention_mask: broadcastable to (B, N, T, S).
        causal, strict, window: as in `Visibility`.
        heads: int. N.

    Returns:
        Bool (B, N, T, S).
    """
    query_positions = _rows(query_positions, batch, queries)
    key_positions = _rows(key_positions, batch, keys)
    if query_order is None:
        query_order = query_positions
    if key_order is None:
        key_order = key_positions
    query_order = _rows(query_order, batch, queries)
    key_order = _rows(key_order, batch, keys)
    mask = np.zeros((batch, heads, queries, keys), "bool")
    allowed = True if attention_mask is None else attention_mask
    allowed = np.broadcast_to(allowed, mask.shape)
    for b, n, t, s in np.ndindex(*mask.shape):
        query, key = query_positions[b, t], key_positions[b, s]
        sees = query >= 0 and key >= 0
        if causal and strict:
            sees = sees and query_order[b, t] > key_order[b, s]
        elif causal:
            sees = sees and query_order[b, t] >= key_order[b, s]
        if window is not None:
            sees = sees and abs(query - key) < window
        if query_segment_ids is not None:
            sees = sees and query_segment_ids[b, t] == key_segment_ids[b, s]
        mask[b, n, t, s] = sees and allowed[b, n, t, s]
    return mask


def positions_from_mask(mask):
    """The number of tokens before each token; -1 at padding."""
    positions = np.full(np.shape(mask), -1, "int32")
    for b, row in enumerate(mask):
        count = 0
        for t, is_token in enumerate(row):
            if is_token:
                positions[b, t] = count
                count += 1
    return positions


def packed_positions(segments, mask=None):
    """The number of tokens before each token in its segment.

    -1 at padding, which does not end a segment.
    """
    positions = np.full(np.shape(segments), -1, "int32")
    for b, row in enumerate(segments):
        latest, count = None, 0
        for t, segment in enumerate(row):
            if mask is not None and not mask[b][t]:
                continue
            count = count if segment == latest else 0
            latest = segment
            positions[b, t] = count
            count += 1
    return positions


def pairs(arrays, use_bias=True):
    """Splits a layer's `get_weights()` into (kernel, bias) pairs."""
    if not use_bias:
        return [(kernel, 0.0) for kernel in arrays]
    return list(zip(arrays[::2], arrays[1::2], strict=True))


def multi_head_attention(
    query, value, arrays, key=None, mask=None, use_bias=True, use_gate=False
):
    """[head_1; ...; head_N] W^O, head_n = Attention(Q W_n^Q, K W_n^K, V W_n^V).

    Vaswani et al. 2017, sec. 3.2.2, with biases; gated: the heads times
    sigmoid(Q W^G). Queries that are fully masked in all heads return zeros.

    Args:
        query: (B, T, D).
        value: (B, S, D').
        arrays: list, the `get_weights()` of the layer: kernels (D, N, H) and
            biases (N, H) of query, key, (gate,) value, then (N, W, D) and (D,)
            of the output.
        key: (B, S, D''), default `value`.
        mask: bool broadcastable to (B, N, T, S).
        use_bias: bool. The arrays hold biases.
        use_gate: bool. The arrays hold a gate.

    Returns:
        Float64 (B, T, D) and the weights, float64 (B, N, T, S).
    """
    key = value if key is None else key
    layers = [
        (_float64(kernel), bias) for kernel, bias in pairs(arrays, use_bias)
    ]
    inputs = [query, key, query, value] if use_gate else [query, key, value]
    for_query, for_key, *for_gate, for_value = (
        np.einsum("btd,dnh->btnh", _float64(x), kernel) + bias
        for x, (kernel, bias) in zip(inputs, layers[:-1], strict=True)
    )
    heads, weights = scaled_dot_attention(for_query, for_key, for_value, mask)
    for gate in for_gate:
        heads = heads / (1 + np.exp(-gate))
    kernel, bias = layers[-1]
    output = np.einsum("btnh,nhd->btd", heads, kernel) + bias
    sees = weights.sum(axis=(1, 3)) > 0
    return np.where(sees[..., None], output, 0.0), weights


def sinusoid(positions, width, layout="interleaved"):
    """PE[p, 2i] = sin(p / 10000^(2i / D)), PE[p, 2i + 1] = cos of the same.

    Vaswani et al. 2017, sec. 3.5. `"halves"`: all sines, then all cosines.
    Position -1 (no token) gives zeros.
    """
    positions = np.asarray(positions)
    table = np.zeros((*positions.shape, width))
    for index in np.ndindex(*positions.shape):
        if positions[index] < 0:
            continue
        for i in range(width // 2):
            angle = positions[index] / 10000.0 ** (2 * i / width)
            columns = (2 * i, 2 * i + 1)
            if layout == "halves":
                columns = (i, width // 2 + i)
            table[(*index, columns[0])] = math.sin(angle)
            table[(*index, columns[1])] = math.cos(angle)
    return table


def layer_norm(x, gain, offset, epsilon=1e-5):
    """gain (x - mean) / sqrt(variance + epsilon) + offset.

    Ba et al. 2016, eq. 4, https://arxiv.org/abs/1607.06450.
    """
    x = _float64(x)
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return gain * (x - mean) / np.sqrt(variance + epsilon) + offset


def relu(x):
    """max(0, x)."""
    return np.maximum(x, 0.0)


def feed_forward(x, arrays, activation=relu, gated=False, use_bias=True):
    """f(x W_1 + b_1) W_2 + b_2, or (f(x W_1 + b_1) * (x W_3 + b_3)) W_2 + b_2.

    Vaswani et al. 2017, sec. 3.3; Shazeer 2020, https://arxiv.org/abs/2002.05202.

    Args:
        x: (..., D).
        arrays: list, the `get_weights()` of the layer: inner, (gate,) outer.
        activation: callable, f.
        gated: bool. The gated form.
        use_bias: bool. The arrays hold biases.
    """
    layers = pairs(arrays, use_bias)
    x = _float64(x)
    hidden = activation(x @ layers[0][0] + layers[0][1])
    if gated:
        hidden = hidden * (x @ layers[1][0] + layers[1][1])
    return hidden @ layers[-1][0] + layers[-1][1]


def encoder_block(
    x,
    arrays,
    mask=None,
    normalize_first=False,
    epsilon=1e-5,
    activation=relu,
    gated=False,
):
    """x = LN(x + MultiHead(x)), y = LN(x + FFN(x)), or pre-norm.

    Vaswani et al. 2017, sec. 3.1; Xiong et al. 2020 for the pre-norm form.

    Args:
        x: (B, T, D).
        arrays: list, the `get_weights()` of the block, with biases: the self-
            attention, its norm, the network, its norm.
        mask: bool broadcastable to (B, N, T, T).
        normalize_first: bool. Pre-norm.
        epsilon: float, of the norms.
        activation: callable, of the network.
        gated: bool, of the network.
    """
    arrays = list(arrays)
    attention, around_attention = _take(arrays, 8), _take(arrays, 2)
    network, around_network = arrays[:-2], arrays[-2:]

    def attend(inputs):
        return multi_head_attention(inputs, inputs, attention, mask=mask)[0]

    def transform(inputs):
        return feed_forward(inputs, network, activation, gated)

    form = normalize_first, epsilon
    x = residual(_float64(x), attend, around_attention, *form)
    return residual(x, transform, around_network, *form)


def decoder_block(
    x,
    memory,
    arrays,
    mask=None,
    memory_mask=None,
    normalize_first=False,
    epsilon=1e-5,
    activation=relu,
    gated=False,
):
    """Self-attention, attention to a memory, network, each with its residual.

    Vaswani et al. 2017, sec. 3.1.

    Args:
        x: (B, T, D).
        memory: (B, S, D').
        arrays: list, the `get_weights()` of the block, with biases: self-
            attention, norm, cross-attention, norm, network, norm.
        mask: bool broadcastable to (B, N, T, T), the causal one included.
        memory_mask: bool broadcastable to (B, N, T, S).
        normalize_first: bool. Pre-norm.
        epsilon: float, of the norms.
        activation: callable, of the network.
        gated: bool, of the network.
    """
    arrays = list(arrays)
    attention, around_attention = _take(arrays, 8), _take(arrays, 2)
    cross, around_cross = _take(arrays, 8), _take(arrays, 2)
    network, around_network = arrays[:-2], arrays[-2:]

    def attend(inputs):
        return multi_head_attention(inputs, inputs, attention, mask=mask)[0]

    def cross_attend(inputs):
        return multi_head_attention(inputs, memory, cross, mask=memory_mask)[0]

    def transform(inputs):
        return feed_forward(inputs, network, activation, gated)

    form = normalize_first, epsilon
    x = residual(_float64(x), attend, around_attention, *form)
    x = residual(x, cross_attend, around_cross, *form)
    return residual(x, transform, around_network, *form)


def residual(x, sublayer, norm, normalize_first=False, epsilon=1e-5):
    """LN(x + f(x)), or x + f(LN(x)) with `normalize_first`."""
    if normalize_first:
        return x + sublayer(layer_norm(x, *norm, epsilon))
    return layer_norm(x + sublayer(x), *norm, epsilon)


def _rows(values, batch, length):
    if values is None:
        values = np.arange(length)[None]
    return np.broadcast_to(np.asarray(values), (batch, length))


def _take(arrays, count):
    taken = arrays[:count]
    del arrays[:count]
    return taken


def _float64(x):
    return np.asarray(x, "float64")
