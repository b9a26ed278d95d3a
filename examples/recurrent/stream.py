#!/usr/bin/env python3
"""A compiled recurrent network from Python, with nothing but ctypes: two streams at once, each with a state of its own, one of them dropped
in the middle and begun again, one saved and restored. The arguments' order and sizes come from the library itself.

    isamap compile examples/f32/gru.isam -D H=16 -o gru.so
    examples/recurrent/stream.py ./gru.so
"""
import array
import ctypes
import random
import sys


class Argument(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_char_p), ("role", ctypes.c_char_p), ("size", ctypes.c_char_p),
                ("extent", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_size_t), ("ndims", ctypes.c_int)]


lib = ctypes.CDLL(sys.argv[1])
lib.gru_argument.restype = ctypes.POINTER(Argument)
lib.gru_message.restype = ctypes.c_char_p
lib.gru_state.restype = ctypes.c_void_p
for size in ("stream", "prepared"):
    getattr(lib, f"gru_{size}_bytes").restype = ctypes.c_size_t

names, shape = [], {}
while lib.gru_argument(len(names)):
    a = lib.gru_argument(len(names)).contents
    names.append(a.name.decode())
    shape[names[-1]] = a.extent[:a.ndims]
hidden = shape["h0"][0]


class Args(ctypes.Structure):                    # struct gru_args
    _fields_ = [(n, ctypes.c_void_p) for n in names] + [("prepared", ctypes.c_void_p), ("threads", ctypes.c_int), ("size_T", ctypes.c_int64)]


def block(n):
    """n bytes, aligned to 64; the object that owns them, and the address."""
    raw = ctypes.create_string_buffer(n + 64)
    return raw, (ctypes.addressof(raw) + 63) // 64 * 64


def check(status):
    if status:
        raise RuntimeError(lib.gru_message(status).decode())


def floats(values):
    return (ctypes.c_float * len(values))(*values)


random.seed(1)
weights = floats([random.uniform(-0.5, 0.5) for _ in range(3 * hidden * hidden)])
prepared = block(lib.gru_prepared_bytes())
args = Args(U=ctypes.addressof(weights), prepared=prepared[1], threads=1)
check(lib.gru_prepare(ctypes.byref(args)))


class Stream:
    def __init__(self):
        self.memory = block(lib.gru_stream_bytes())
        self.reset()

    def reset(self):
        check(lib.gru_init(ctypes.byref(args), ctypes.c_void_p(self.memory[1])))      # h0 is NULL: zeros

    def state(self):
        return (ctypes.c_float * hidden).from_address(lib.gru_state(ctypes.c_void_p(self.memory[1]), 0))

    def step(self, frames):
        n = len(frames) // (3 * hidden)
        x, y = floats(frames), (ctypes.c_float * (n * hidden + 1))()
        args.X, args.y, args.size_T = ctypes.addressof(x), ctypes.addressof(y), n
        check(lib.gru_step(ctypes.byref(args), ctypes.c_void_p(self.memory[1])))
        return list(y)[:n * hidden]


frame = 3 * hidden
sequence = [random.uniform(-1, 1) for _ in range(40 * frame)]


def cut(stream, pieces):
    out, at = [], 0
    while at < len(sequence):
        n = pieces[len(out) % len(pieces)] * frame if pieces else len(sequence)
        out.append(stream.step(sequence[at:at + n]))
        at += n
    return [v for o in out for v in o]


one, two = Stream(), Stream()
whole = cut(one, [])
for pieces in ([1], [2], [7], [3, 0, 5, 1]):     # a step of no frames changes nothing
    two.step(sequence[:5 * frame])               # dropped in the middle
    two.reset()
    assert cut(two, pieces) == whole, pieces

one.reset()                                      # two streams in turns
two.reset()
mixed = [], []
for at in range(0, len(sequence), frame):
    mixed[0].extend(one.step(sequence[at:at + frame]))
    mixed[1].extend(two.step(sequence[len(sequence) - frame - at:len(sequence) - at]))
assert mixed[0] == whole and mixed[1] != whole

one.reset()                                      # saved after 11 frames, restored into the other
one.step(sequence[:11 * frame])
saved = list(one.state())
two.state()[:] = saved
assert two.step(sequence[11 * frame:]) == whole[11 * hidden:]

one.reset()
one.state()[:] = [float("nan")] * hidden         # a state that is not a number stays one until the stream begins again
assert all(v != v for v in one.step(sequence[:frame]))
one.reset()
assert cut(one, [4]) == whole

args.size_T = 4097                               # longer than declared: an error, and the stream is as it was
before = list(one.state())
status = lib.gru_step(ctypes.byref(args), ctypes.c_void_p(one.memory[1]))
assert status == 2 and list(one.state()) == before, status
print(f"{len(sequence) // frame} frames, {hidden} units: the same for every cut")
