"""Reading and writing at indices."""

import itertools

import numpy as np
import torch

from elements import Tensor
from oracles import Unclear, define


def below(limit):
    """Indices less than it."""
    return lambda shape, random: random.integers(0, max(limit, 1), shape)


def both_signs(limit):
    return lambda shape, random: random.integers(-limit, limit, shape)


def apart(limit, axis):
    """Indices that differ along an axis."""

    def draw(shape, random):
        shape = list(shape)
        whole = list(shape)
        if shape:
            whole[axis] = limit
        order = np.argsort(random.random(whole), axis=axis if shape else None)
        return np.take(order, range(shape[axis]), axis=axis) if shape else np.zeros([], np.int64)

    return draw


define(
    "Embedding",
    lambda weight, indices: weight[indices],
    specials=False,
    mixed=False,
    dtypes={"indices": "INT64"},
    calls=[
        ({"weight": w, "indices": i}, {}, {"indices": below(w[0])})
        for w, i in (
            ([10, 4], [5]),
            ([10, 4], [2, 3]),
            ([10, 4], []),
            ([3, 67], [7]),
            ([3, 1], [2, 0]),
            ([133, 3], [64]),
            ([2, 2], [1, 2, 1, 2, 1, 2, 2]),
            ([1, 5], [9]),
        )
    ],
    extra=lambda operator: index_dtypes(operator, "indices"),
)


def index_dtypes(operator, *names, what="indices"):
    """The first call again with each dtype of the indices."""
    operator.call_domains = {}
    shapes, attributes, domains = operator.entry.calls[0]
    operator.call_domains = domains
    by_name = {a.name: a for a in operator.attributes}
    for dtype in ("INT32", "INT64", "UINT8", "INT8", "INT16"):
        chosen = operator.uniform("FLOAT")
        for argument in operator.inputs:
            if argument.name in names:
                if dtype not in argument.dtypes.split() and "integers" not in argument.dtypes.split():
                    return
                chosen[argument.name] = dtype
        operator.add(
            f"{what} of {dtype}",
            operator.make_inputs(shapes, chosen),
            {n: operator.as_value(by_name[n], v) for n, v in attributes.items()},
        )


def bag_starts(has_end, count):
    """Offsets of bags of that many indices, some of them empty."""

    def draw(shape, random):
        starts = np.sort(random.integers(0, count + 1, shape))
        starts[0] = 0
        if has_end:
            starts[-1] = count
        return starts

    return draw


def embedding_bag(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx):
    def run(mode, factors=None):
        return torch._embedding_bag(
            weight, indices, offsets, False, mode, False, factors, include_last_offset, padding_idx
        )

    # Sums leave the bags and their sizes out there.
    _, bags, sizes, _ = run(1)
    output, _, _, max_indices = run(mode if mode in (0, 1) else 2, per_sample_weights)
    return output, bags, sizes, sizes if mode in (0, 1) else max_indices


def bag_terms(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx):
    factors = None if per_sample_weights is None else per_sample_weights.abs()
    output = embedding_bag(weight.abs(), indices, offsets, mode, factors, include_last_offset, padding_idx)[0]
    return {"output": output * (mode in (0, 1))}


def more_bags(operator):
    for names in (["indices"], ["offsets"], ["indices", "offsets"]):
        index_dtypes(operator, *names, what=" and ".join(names))
    inputs, attributes = operator.plain
    no_offsets = {**inputs, "offsets": Tensor("INT64", np.zeros(0, "<i8"))}
    with_end = {**attributes, "include_last_offset": {"bool_value": True}}
    operator.refuse("no last offset", "offsets", no_offsets, with_end)


def bag_call(weight, count, starts, mode, has_end=False, padding=-1, has_factors=False):
    shapes = {"weight": weight, "indices": [count], "offsets": [starts]}
    if has_factors:
        shapes["per_sample_weights"] = [count]
    attributes = {"mode": mode, "include_last_offset": has_end, "padding_idx": padding}
    return shapes, attributes, {"indices": below(weight[0]), "offsets": bag_starts(has_end, count)}


define(
    "EmbeddingBag",
    embedding_bag,
    specials=False,
    mixed=False,
    dtypes={"indices": "INT64", "offsets": "INT64"},
    calls=[
        bag_call([10, 4], 7, 3, 0),
        bag_call([10, 4], 7, 3, 1),
        bag_call([10, 4], 7, 3, 2),
        bag_call([10, 4], 7, 3, 0, has_factors=True),
        bag_call([4, 5], 9, 4, 0, has_end=True, padding=2, has_factors=True),
        bag_call([4, 5], 9, 4, 1, has_end=True, padding=2),
        bag_call([4, 5], 9, 4, 2, has_end=True, padding=2),
        bag_call([2, 3], 6, 5, 1, padding=1),
        bag_call([2, 3], 6, 5, 2, padding=1),
        bag_call([3, 300], 64, 5, 0),
        bag_call([3, 300], 64, 5, 1),
        bag_call([3, 300], 64, 5, 2),
        bag_call([7, 1], 600, 2, 0, has_factors=True),
        bag_call([7, 1], 600, 2, 2),
        bag_call([1, 3], 5, 20, 1),
        bag_call([9, 2], 1, 2, 0, has_end=True),
    ],
    attributes={
        "mode": ["sum", "mean", "max", 0, 1, 2, 3, -1],
        "padding_idx": ["none", 3],
        "include_last_offset": [False],
        "scale_grad_by_freq": [False],
        "sparse": [False],
    },
    terms=bag_terms,
    extra=lambda operator: more_bags(operator),
)


def embedding_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq):
    rows = grad.reshape(-1, grad.shape[-1])
    flat = indices.reshape(-1)
    out = torch.zeros(num_weights, grad.shape[-1], dtype=torch.float64)
    counts = torch.bincount(flat, minlength=num_weights) if flat.numel() else None
    for i, index in enumerate(flat.tolist()):
        if index != padding_idx:
            out[index] += rows[i] / (int(counts[index]) if scale_grad_by_freq else 1)
    return out


define(
    "EmbeddingDenseBackward",
    embedding_backward,
    specials=False,
    mixed=False,
    dtypes={"indices": "INT64"},
    calls=[
        (
            {"grad": [*i, c], "indices": i},
            {"num_weights": n, "padding_idx": p, "scale_grad_by_freq": s},
            {"indices": below(n)},
        )
        for i, c, n, p, s in (
            ([5], 4, 10, -1, False),
            ([2, 3], 4, 3, -1, False),
            ([2, 3], 4, 3, 1, True),
            ([64], 3, 4, 2, False),
            ([64], 67, 4, -1, True),
            ([0], 3, 4, -1, False),
            ([7], 1, 1, -1, False),
            ([9], 2, 3, 0, True),
        )
    ],
    terms=lambda grad, indices, num_weights: embedding_backward(grad.abs(), indices, num_weights, -1, False),
    extra=lambda operator: index_dtypes(operator, "indices"),
)
GATHERS = [
    ([4, 5], 1, [4, 3]),
    ([4, 5], 0, [2, 5]),
    ([4, 5], -1, [3, 9]),
    ([133], 0, [67]),
    ([2, 3, 4], 1, [2, 2, 3]),
    ([4, 5], 0, [0, 5]),
    ([1, 2, 1, 3, 1, 2, 1, 2], 3, [1, 2, 1, 2, 1, 2, 1, 2]),
    ([], 0, []),
]
define(
    "Gather",
    lambda self, dim, index: torch.gather(self, dim, index),
    specials=False,
    mixed=False,
    dtypes={"index": "INT64"},
    calls=[({"self": s, "index": i}, {"dim": d}, {"index": below(s[d] if s else 1)}) for s, d, i in GATHERS],
    extra=lambda operator: index_dtypes(operator, "index"),
)


def take(self, dim, index):
    dim %= max(self.dim(), 1)
    flat = torch.index_select(self, dim, index.reshape(-1))
    return flat.reshape([*self.shape[:dim], *index.shape, *self.shape[dim + 1 :]])


TAKES = [
    ([4, 5], 1, [3]),
    ([4, 5], 0, [7]),
    ([4, 5], -1, []),
    ([133], 0, [67]),
    ([2, 3, 4], 1, [5]),
    ([4, 5], 0, [0]),
    ([1, 2, 1, 3, 1, 2, 1, 2], 3, [4]),
]
define(
    "GatherV2",
    take,
    specials=False,
    mixed=False,
    dtypes={"index": "INT64"},
    calls=[
        ({"self": s, "index": i}, {"dim": d}, {"index": below(s[d])})
        for s, d, i in TAKES + [([4, 5], 1, [2, 3]), ([4, 5], 0, [2, 1, 2])]
    ],
    extra=lambda operator: index_dtypes(operator, "index"),
)
define(
    "IndexSelect",
    lambda self, dim, index: torch.index_select(self, dim, index.reshape(-1)),
    specials=False,
    mixed=False,
    dtypes={"index": "INT64"},
    calls=[({"self": s, "index": i}, {"dim": d}, {"index": below(s[d])}) for s, d, i in TAKES],
    extra=lambda operator: index_dtypes(operator, "index"),
)


def gather_nd(self, indices):
    places = tuple(indices[..., k] for k in range(indices.shape[-1]))
    return self[places] if places else self.expand([*indices.shape[:-1], *self.shape])


define(
    "GatherNd",
    gather_nd,
    specials=False,
    mixed=False,
    dtypes={"indices": "INT64"},
    calls=[
        (
            {"self": s, "indices": i},
            {"negative_index_support": n},
            {"indices": both_signs(min(s)) if n else below(min(s))},
        )
        for s, i, n in (
            ([4, 5], [3, 1], False),
            ([4, 5], [3, 2], False),
            ([2, 3, 4], [5, 2], False),
            ([4, 5], [2, 3, 2], False),
            ([133], [67, 1], False),
            ([4, 5], [2], False),
            ([4, 5], [3, 2], True),
            ([2, 3, 4], [0, 2], False),
        )
    ],
)
INDICES = [
    ([4, 5], [[3]]),
    ([4, 5], [[3], [3]]),
    ([2, 3, 4], [[2, 2], [2]]),
    ([4, 5], [[2, 1], [3]]),
    ([133], [[67]]),
    ([3, 3, 3], [[2], [2], [2]]),
    ([4, 5], [[]]),
    ([4, 5], [[0]]),
]


def small_indices(shape, indices):
    return both_signs(min(shape[: len(indices)]))


define(
    "Index",
    lambda self, indices: self[tuple(indices)],
    specials=False,
    mixed=False,
    dtypes={"indices": "INT64"},
    calls=[({"self": s, "indices": i}, {}, {"indices": small_indices(s, i)}) for s, i in INDICES],
    extra=lambda operator: index_dtypes(operator, "indices"),
)


def index_add(self, dim, index, source, alpha):
    result = self.clone()
    if not self.dim():
        return result + alpha * source.reshape(())
    index = index.reshape(-1)
    for i, at in enumerate(index.tolist()):
        result.select(dim, at).add_(alpha * source.select(dim, i))
    return result


def with_extent(shape, dim, extent):
    shape = list(shape)
    shape[dim] = extent
    return shape


_add_calls = [
    ({"self": s, "index": i, "source": with_extent(s, d, i[0] if i else 1)}, {"dim": d}, {"index": below(s[d])})
    for s, d, i in TAKES
    if i
]
_whole_alpha = {
    "attributes": {"alpha": lambda d: [1, 2] if d not in ("FLOAT", "FLOAT16", "BF16", "DOUBLE") else [2.0, 0.5]}
}
define(
    "IndexAdd",
    index_add,
    specials=False,
    mixed=False,
    dtypes={"index": "INT64"},
    calls=_add_calls,
    **_whole_alpha,
    terms=lambda self, dim, index, source, alpha: index_add(self.abs(), dim, index, source.abs(), abs(alpha)),
    extra=lambda operator: index_dtypes(operator, "index"),
)


def index_put(self, indices, values, accumulate):
    self = self.clone()
    shape = self[tuple(indices)].shape
    places = [p + (p < 0) * n for p, n in zip(torch.broadcast_tensors(*indices), self.shape)]
    values = values.expand(shape)
    seen = set()
    for at in itertools.product(*map(range, places[0].shape)):
        place = tuple(int(p[at]) for p in places)
        if not accumulate and place in seen:
            raise Unclear
        seen.add(place)
        if accumulate:
            self[place] += values[at]
        else:
            self[place] = values[at]
    return self


define(
    "IndexPutImpl",
    index_put,
    specials=False,
    mixed=False,
    dtypes={"indices": "INT64"},
    calls=[
        (
            {"self": s, "indices": i, "values": v},
            {"accumulate": a},
            {
                "indices": (
                    below(min(s[: len(i)]))
                    if a
                    else (lambda shape, random, n=min(s[: len(i)]): random.permutation(n)[: shape[0]])
                )
            },
        )
        for s, i, v, a in (
            ([4, 5], [[3]], [3, 5], False),
            ([4, 5], [[3]], [5], False),
            ([4, 5], [[3], [3]], [3], False),
            ([133], [[67]], [67], False),
            ([2, 3, 4], [[2], [2]], [2, 4], False),
            ([4, 5], [[7]], [7, 5], True),
            ([4, 5], [[3], [3]], [], True),
            ([133], [[67]], [67], True),
            ([3, 3, 3], [[5], [5], [5]], [5], True),
        )
    ],
    terms=lambda self, indices, values: self.abs() + values.abs().max() * 8 if values.numel() else self.abs(),
)


def scatter(self, dim, index, src, reduce):
    if not self.dim():
        value = src if torch.is_tensor(src) else torch.as_tensor(src, dtype=self.dtype)
        return [value.reshape([]).clone(), self + value, self * value][reduce]
    if not torch.is_tensor(src):
        src = torch.full(index.shape, src, dtype=self.dtype)
    result = self.clone().numpy()
    for at in itertools.product(*map(range, index.shape)):
        to = list(at)
        to[dim] = int(index[at])
        to = tuple(to)
        value = src[at].item()
        if reduce == 0:
            result[to] = value
        elif reduce == 1:
            result[to] += value
        else:
            result[to] *= value
    return torch.from_numpy(result)


SCATTERS = [
    ([4, 5], 1, [4, 3]),
    ([4, 5], 0, [2, 5]),
    ([4, 5], -1, [3, 4]),
    ([133], 0, [67]),
    ([2, 3, 4], 1, [2, 2, 3]),
    ([4, 5], 0, [0, 5]),
    ([4, 5], 1, [4, 0]),
    ([2, 3, 4], 1, [2, 0, 3]),
    ([1, 2, 1, 3, 1, 2, 1, 2], 3, [1, 2, 1, 2, 1, 2, 1, 2]),
]


def scatter_calls(source, reductions):
    return [
        (
            {"self": s, "index": i, **({"src": i} if source else {})},
            {"dim": d, **({"reduce": r} if r is not None else {})},
            {
                "index": below(s[d]) if r in (None, 1) and source else apart(s[d], d % len(s)),
                "self": (-4, 4),
                "src": (-2, 2),
            },
        )
        for s, d, i in SCATTERS
        for r in reductions
    ]


_scatter = {"specials": False, "mixed": False, "dtypes": {"index": "INT64"}}
define(
    "Scatter",
    lambda self, dim, index, src, reduce: scatter(self, dim, index, src, reduce),
    **_scatter,
    calls=scatter_calls(True, (0, 1, 2)),
    attributes={"reduce": [0, "replace"]},
    terms=lambda self, dim, index, src, reduce: scatter(self.abs(), dim, index, src.abs(), reduce),
)
define(
    "ScatterValue",
    lambda self, dim, index, value, reduce: scatter(self, dim, index, value, reduce),
    **_scatter,
    calls=[({n: s for n, s in c[0].items()}, {**c[1], "value": 2}, c[2]) for c in scatter_calls(False, (0, 1, 2))],
    attributes={
        "reduce": [0],
        "value": lambda d: [2, 3] if d not in ("FLOAT", "FLOAT16", "BF16", "DOUBLE") else [0.5, 2],
    },
    terms=lambda self, dim, index, value, reduce: scatter(self.abs(), dim, index, abs(value), reduce),
)
define(
    "ScatterAdd",
    lambda self, dim, index, src: scatter(self, dim, index, src, 1),
    **_scatter,
    calls=scatter_calls(True, (None,)),
    terms=lambda self, dim, index, src: scatter(self.abs(), dim, index, src.abs(), 1),
    extra=lambda operator: index_dtypes(operator, "index"),
)


def scatter_nd(self, indices, updates):
    result = self.clone()
    places = tuple(indices[..., k] for k in range(indices.shape[-1]))
    result[places] = updates
    return result


define(
    "ScatterNdUpdate",
    scatter_nd,
    specials=False,
    mixed=False,
    dtypes={"indices": "INT64"},
    calls=[
        (
            {"self": s, "indices": i, "updates": [*i[:-1], *s[i[-1] :]]},
            {},
            {
                "indices": lambda shape, random, n=s[0]: np.repeat(random.permutation(n)[: shape[0]], shape[1]).reshape(
                    shape
                )
            },
        )
        for s, i in (
            ([4, 5], [3, 1]),
            ([4, 5], [4, 2]),
            ([133], [67, 1]),
            ([3, 4, 2], [2, 2]),
            ([5, 3], [0, 1]),
            ([7, 7], [5, 2]),
        )
    ],
)


def unfold_grad(grad_out, input_sizes, dim, size, step):
    result = torch.zeros(input_sizes, dtype=torch.float64)
    dim %= max(len(input_sizes), 1)
    for i in range(grad_out.shape[dim]):
        window = grad_out.select(dim, i).movedim(-1, dim) if grad_out.dim() > 1 else grad_out
        result.narrow(dim, i * step, size).add_(window)
    return result


define(
    "UnfoldGrad",
    unfold_grad,
    specials=False,
    calls=[
        (
            {"grad_out": [*s[:d], (s[d] - n) // step + 1, *s[d + 1 :], n]},
            {"input_sizes": s, "dim": d, "size": n, "step": step},
        )
        for s, d, n, step in (
            ([9], 0, 3, 2),
            ([4, 7], 1, 3, 1),
            ([7, 4], 0, 2, 2),
            ([2, 8, 3], 1, 4, 3),
            ([133], 0, 5, 4),
            ([5], 0, 5, 1),
            ([6], 0, 2, 4),
        )
    ],
    attributes={n: [] for n in ("input_sizes", "dim", "size", "step")},
    terms=lambda grad_out, input_sizes, dim, size, step: unfold_grad(grad_out.abs(), input_sizes, dim, size, step),
)


def scatter_update(data, indices, updates, axis):
    result = data.clone()
    axis %= data.dim()
    for b in range(updates.shape[0]):
        part = result[b].narrow(axis - 1, int(indices[b]), updates.shape[axis])
        for d in range(1, data.dim()):
            if d != axis:
                part = part.narrow(d - 1, 0, updates.shape[d])
        part.copy_(updates[b])
    return result


define(
    "InplaceScatterUpdate",
    scatter_update,
    specials=False,
    mixed=False,
    dtypes={"indices": "INT64"},
    calls=[
        ({"data": s, "indices": [s[0]], "updates": with_extent(s, a, n)}, {"axis": a}, {"indices": below(s[a] - n + 1)})
        for s, a, n in (
            ([2, 5, 3], -2, 2),
            ([2, 5, 3], 1, 1),
            ([3, 2, 9], -1, 4),
            ([2, 2, 5, 3], -2, 2),
            ([4, 7, 1], 1, 7),
        )
    ],
)
