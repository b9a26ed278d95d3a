#!/usr/bin/python3
"""Trains the two networks of this folder and writes them as ONNX, with the images that they were not trained on.

Needs python3-numpy and python3-sklearn (whose package carries the handwritten digits); takes half a minute. README.md says what
comes out."""
import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one order of summation: the same weights each time
import numpy as np
from sklearn.datasets import load_digits

HELD_OUT = 360
EPOCHS = 40
BATCH = 32
CONVS = [(1, 16), (16, 16), (16, 32)]  # channels in and out; 3x3, pad 1, each followed by relu
POOL_AFTER = {1, 2}
CLASSES = 10


# ---- the network in numpy -------------------------------------------------------------------------------------------------------

def patches(x):
    """[N,C,H,W] -> [N,H,W,C*9]: the 3x3 neighbourhood of each pixel, zeros outside."""
    n, c, h, w = x.shape
    p = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    cols = np.stack([p[:, :, r:r + h, s:s + w] for r in range(3) for s in range(3)], axis=2)
    return cols.transpose(0, 3, 4, 1, 2).reshape(n, h, w, c * 9)


def conv(x, w):
    """The sum of products of Conv, without its bias, in the type of the arguments."""
    return (patches(x) @ w.reshape(w.shape[0], -1).T).transpose(0, 3, 1, 2)


def pool(x):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))


def forward(params, x, keep=None):
    for i in range(len(CONVS)):
        w, b = params[2 * i], params[2 * i + 1]
        before = x
        x = np.maximum(conv(x, w) + b[:, None, None], 0)
        pooled = pool(x) if i in POOL_AFTER else x
        if keep is not None:
            keep.append((before, x, pooled))
        x = pooled
    flat = x.reshape(len(x), -1)
    return flat @ params[-1]


def unpool(grad, x, pooled):
    """Sends the gradient to the largest of each 2x2 window; equal ones share it."""
    up = pooled.repeat(2, axis=2).repeat(2, axis=3)
    mask = (x == up).astype(x.dtype)
    n, c, h, w = x.shape
    count = mask.reshape(n, c, h // 2, 2, w // 2, 2).sum(axis=(3, 5))
    return mask * (grad / count).repeat(2, axis=2).repeat(2, axis=3)


def gradients(params, x, labels):
    keep = []
    logits = forward(params, x, keep)
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(x)), labels] -= 1
    p /= len(x)
    flat = keep[-1][2].reshape(len(x), -1)
    grads = [None] * len(params)
    grads[-1] = flat.T @ p
    g = (p @ params[-1].T).reshape(keep[-1][2].shape)
    for i in reversed(range(len(CONVS))):
        before, after, pooled = keep[i]
        if i in POOL_AFTER:
            g = unpool(g, after, pooled)
        g = g * (after > 0)
        w = params[2 * i]
        k = w.shape[0]
        grads[2 * i] = (g.transpose(1, 0, 2, 3).reshape(k, -1) @ patches(before).reshape(-1, w[0].size)).reshape(w.shape)
        grads[2 * i + 1] = g.sum(axis=(0, 2, 3))
        g = conv(g, np.ascontiguousarray(w[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)))
    return grads


def shifted(x, rng):
    """Half of the images, moved by one pixel in a direction of their own."""
    y = x.copy()
    for i in range(len(x)):
        if rng.random() < 0.5:
            dy, dx = rng.integers(-1, 2, 2)
            big = np.pad(x[i], ((0, 0), (1, 1), (1, 1)))
            y[i] = big[:, 1 + dy:9 + dy, 1 + dx:9 + dx]
    return y


def train(x, labels, rng):
    params = []
    for c, k in CONVS:
        params.append((rng.standard_normal((k, c, 3, 3)) * np.sqrt(2 / (9 * c))).astype(np.float32))
        params.append(np.zeros(k, np.float32))
    params.append((rng.standard_normal((CONVS[-1][1] * 4, CLASSES)) * np.sqrt(1 / 128)).astype(np.float32))
    m = [np.zeros_like(p) for p in params]
    v = [np.zeros_like(p) for p in params]
    step, steps = 0, EPOCHS * (len(x) // BATCH)
    for _ in range(EPOCHS):
        order = rng.permutation(len(x))
        for at in range(0, len(x) - BATCH + 1, BATCH):
            batch = order[at:at + BATCH]
            grads = gradients(params, shifted(x[batch], rng), labels[batch])
            step += 1
            rate = 2e-3 * 0.5 * (1 + np.cos(np.pi * step / steps))
            for i, g in enumerate(grads):
                g = g + 1e-4 * params[i]
                m[i] = 0.9 * m[i] + 0.1 * g
                v[i] = 0.999 * v[i] + 0.001 * g * g
                params[i] = (params[i] - rate * (m[i] / (1 - 0.9 ** step)) /
                             (np.sqrt(v[i] / (1 - 0.999 ** step)) + 1e-8)).astype(np.float32)
    return params


# ---- eight-bit integers ---------------------------------------------------------------------------------------------------------
# A tensor of scale 2^e holds q * 2^e, zero point 0. Layer: acc = bias + sum x*w in i32; y = i8(clip(round(acc * 2^-shift))).

INPUT_EXPONENT = -7


def requantise(acc, shift):
    """Round half to even, in integers, checked against the definition in f64."""
    assert shift >= 0 and np.abs(acc).max() < 2 ** 31
    q, rest = acc >> shift, acc & ((1 << shift) - 1)
    half = (1 << shift) >> 1
    up = (rest > half) | ((rest == half) & (q & 1 == 1)) if shift else np.zeros_like(q, bool)
    y = np.clip(q + up, -128, 127)
    assert (y == np.clip(np.rint(acc.astype(np.float64) * 2.0 ** -shift), -128, 127)).all()
    return y


def forward_int8(layers, x, upto=None):
    """x: int64 values of i8. Exact: every product and sum is an integer in float64, far below 2^53."""
    x = x.astype(np.int64)
    for i, layer in enumerate(layers[:upto]):
        if i < len(CONVS):
            acc = np.rint(conv(x.astype(np.float64), layer["w"].astype(np.float64))).astype(np.int64)
            acc = acc + layer["b"].astype(np.int64)[:, None, None]
            x = np.maximum(requantise(acc, layer["shift"]), 0)
            x = pool(x) if i in POOL_AFTER else x
        else:
            acc = x.reshape(len(x), -1) @ layer["w"].astype(np.int64)
            x = requantise(acc, layer["shift"])
    return x


def quantised_layer(w, b, we, xe, ye):
    q = np.clip(np.rint(w * 2.0 ** -we), -127, 127).astype(np.int8)
    bias = np.rint(b.astype(np.float64) * 2.0 ** -(xe + we)).astype(np.int32) if b is not None else None
    return {"w": q, "b": bias, "we": we, "xe": xe, "ye": ye, "shift": ye - xe - we}


def quantise(params, x, xq):
    """For each layer the pair of exponents (weights, result) with the least squared error of the layer's result on `x`, among those
    near the largest values; the inputs of each layer are those that the integer layers before it give."""
    layers, keep, exponent = [], [], INPUT_EXPONENT
    logits = forward(params, x, keep)
    wanted = [k[2] for k in keep] + [logits]
    for i, want in enumerate(wanted):
        w, b = (params[2 * i], params[2 * i + 1]) if i < len(CONVS) else (params[-1], None)
        we0 = int(np.ceil(np.log2(np.abs(w).max() / 127)))
        ye0 = int(np.ceil(np.log2(np.abs(want).max() / 127)))
        best = None
        for we in (we0, we0 - 1):
            for ye in (ye0, ye0 - 1, ye0 - 2):
                if ye < exponent + we:
                    continue
                layer = quantised_layer(w, b, we, exponent, ye)
                got = forward_int8(layers + [layer], xq) * 2.0 ** ye
                error = float(((got - want) ** 2).mean())
                if best is None or error < best[0]:
                    best = (error, layer)
        layer = best[1]
        if b is not None:  # what rounding the weights does to the mean of a channel goes into its bias
            layer = corrected(layers, layer, want, xq)
        layers.append(layer)
        exponent = layer["ye"]
    return layers


def corrected(layers, layer, want, xq):
    got = forward_int8(layers + [layer], xq) * 2.0 ** layer["ye"]
    drift = (want - got).mean(axis=(0, 2, 3))
    better = dict(layer, b=(layer["b"] + np.rint(drift * 2.0 ** -(layer["xe"] + layer["we"]))).astype(np.int32))
    after = forward_int8(layers + [better], xq) * 2.0 ** layer["ye"]
    return better if ((after - want) ** 2).mean() < ((got - want) ** 2).mean() else layer


# ---- ONNX: the few protobuf messages that are needed ----------------------------------------------------------------------------

TYPES = {np.dtype(np.float32): 1, np.dtype(np.int8): 3, np.dtype(np.int32): 6}


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n)


def chunk(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name, array):
    array = np.asarray(array)
    return (b"".join(number(1, d) for d in array.shape) + number(2, TYPES[array.dtype]) + chunk(8, name) +
            chunk(9, array.astype(array.dtype.newbyteorder("<")).tobytes()))


def attribute(name, value):
    if isinstance(value, int):
        return chunk(1, name) + number(3, value) + number(20, 2)
    return chunk(1, name) + b"".join(number(8, v) for v in value) + number(20, 7)


def node(op, inputs, output, **attributes):
    return (b"".join(chunk(1, i) for i in inputs) + chunk(2, output) + chunk(3, output) + chunk(4, op) +
            b"".join(chunk(5, attribute(k, v)) for k, v in attributes.items()))


def value(name, dtype, dims):
    shape = b"".join(chunk(1, chunk(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
    return chunk(1, name) + chunk(2, chunk(1, number(1, TYPES[np.dtype(dtype)]) + chunk(2, shape)))


def model(name, nodes, tensors, dtype):
    graph = (b"".join(chunk(1, n) for n in nodes) + chunk(2, name) + b"".join(chunk(5, tensor(k, t)) for k, t in tensors.items()) +
             chunk(11, value("image", dtype, ["N", 1, 8, 8])) + chunk(12, value("logits", dtype, ["N", CLASSES])))
    return number(1, 8) + chunk(2, "isamap examples") + chunk(7, graph) + chunk(8, chunk(1, "") + number(2, 15))


def model_f32(params):
    nodes, tensors, x = [], {}, "image"
    for i in range(len(CONVS)):
        tensors[f"w{i + 1}"], tensors[f"b{i + 1}"] = params[2 * i], params[2 * i + 1]
        nodes.append(node("Conv", [x, f"w{i + 1}", f"b{i + 1}"], f"conv{i + 1}", kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
        nodes.append(node("Relu", [f"conv{i + 1}"], f"relu{i + 1}"))
        x = f"relu{i + 1}"
        if i in POOL_AFTER:
            nodes.append(node("MaxPool", [x], f"pool{i + 1}", kernel_shape=[2, 2], strides=[2, 2]))
            x = f"pool{i + 1}"
    tensors["w4"] = params[-1]
    nodes.append(node("Flatten", [x], "flat", axis=1))
    nodes.append(node("Gemm", ["flat", "w4"], "logits"))
    return model("digits", nodes, tensors, np.float32)


def model_int8(layers):
    nodes, tensors, x = [], {"zero": np.int8(0), "scale0": np.float32(2.0 ** INPUT_EXPONENT)}, "image"
    for i, layer in enumerate(layers):
        n = i + 1
        tensors[f"w{n}"] = layer["w"]
        tensors[f"wscale{n}"] = np.float32(2.0 ** layer["we"])
        tensors[f"scale{n}"] = np.float32(2.0 ** layer["ye"])
        scales = [f"scale{i}", "zero", f"w{n}", f"wscale{n}", "zero", f"scale{n}", "zero"]
        if i == len(CONVS):
            nodes.append(node("Flatten", [x], "flat", axis=1))
            nodes.append(node("QLinearMatMul", ["flat"] + scales, "logits"))
            continue
        tensors[f"b{n}"] = layer["b"]
        nodes.append(node("QLinearConv", [x] + scales + [f"b{n}"], f"conv{n}", kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
        nodes.append(node("Relu", [f"conv{n}"], f"relu{n}"))
        x = f"relu{n}"
        if i in POOL_AFTER:
            nodes.append(node("MaxPool", [x], f"pool{n}", kernel_shape=[2, 2], strides=[2, 2]))
            x = f"pool{n}"
    return model("digits_int8", nodes, tensors, np.int8)


# ---- all of it ------------------------------------------------------------------------------------------------------------------

def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    rng = np.random.default_rng(7)
    digits = load_digits()
    order = rng.permutation(len(digits.images))
    raw = digits.images[order][:, None]
    labels = digits.target[order].astype(np.int64)
    images = (raw / 16).astype(np.float32)
    images8 = np.minimum(raw * 8, 127).astype(np.int8)
    test, rest = slice(0, HELD_OUT), slice(HELD_OUT, None)

    params = train(images[rest], labels[rest], rng)
    logits = forward(params, images[test])
    accuracy = float((logits.argmax(axis=1) == labels[test]).mean())
    layers = quantise(params, images[rest], images8[rest])
    logits8 = forward_int8(layers, images8[test]).astype(np.int8)
    accuracy8 = float((logits8.argmax(axis=1) == labels[test]).mean())
    print(f"f32:  {accuracy * 100:.2f} % of {HELD_OUT} held-out images")
    print(f"int8: {accuracy8 * 100:.2f} %; multipliers " + " ".join(f"2^-{x['shift']}" for x in layers))
    assert accuracy >= 0.98 and accuracy8 >= accuracy - 0.01

    def path(name):
        return os.path.join(folder, name)

    with open(path("digits.onnx"), "wb") as f:
        f.write(model_f32(params))
    with open(path("digits-int8.onnx"), "wb") as f:
        f.write(model_int8(layers))
    np.save(path("images.npy"), images[test])
    np.save(path("images-int8.npy"), images8[test])
    np.save(path("labels.npy"), labels[test].astype(np.int32))
    np.save(path("logits.npy"), logits.astype(np.float32))
    np.save(path("logits-int8.npy"), logits8)


main()
