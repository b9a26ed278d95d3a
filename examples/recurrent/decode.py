#!/usr/bin/env python3
"""Tokens through a decoder block whose keys and values grow by a row a token. The library keeps them: cut the sequence anywhere, save what a stream knows and go on from it in
another one, and the numbers are the same.

    isamap compile examples/recurrent/decoder.isam -o decoder.so        # or --kernel decoder_i8 -o decoder_i8.so
    examples/recurrent/decode.py ./decoder.so 300
"""
import ctypes
import os
import random
import statistics
import sys
import time

path, tokens = os.path.abspath(sys.argv[1]), int(sys.argv[2])
name = os.path.splitext(os.path.basename(path))[0]
lib = ctypes.CDLL(path)


class Argument(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_char_p), ("role", ctypes.c_char_p), ("size", ctypes.c_char_p),
                ("extent", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_size_t), ("ndims", ctypes.c_int)]


def entry(what, result=ctypes.c_int):
    f = getattr(lib, f"{name}_{what}")
    f.restype = result
    return f


argument, message, state = entry("argument", ctypes.POINTER(Argument)), entry("message", ctypes.c_char_p), entry("state", ctypes.c_void_p)
prepare, init, step = entry("prepare"), entry("init"), entry("step")
arguments = []
while argument(len(arguments)):
    arguments.append(argument(len(arguments)).contents)
most, width = arguments[0].extent[:2]


class Args(ctypes.Structure):
    _fields_ = [(a.name.decode(), ctypes.c_void_p) for a in arguments] + [("prepared", ctypes.c_void_p), ("threads", ctypes.c_int), ("size_T", ctypes.c_int64)]


kept = []


def block(n):
    """The address of n zeros, aligned to 64 bytes."""
    kept.append(ctypes.create_string_buffer(n + 64))
    return (ctypes.addressof(kept[-1]) + 63) // 64 * 64


def check(status):
    if status:
        raise RuntimeError(message(status).decode())


random.seed(1)
args = Args(prepared=block(entry("prepared_bytes", ctypes.c_size_t)()), threads=1)
for a in arguments:
    n, at = a.bytes, block(a.bytes)
    if a.type == b"i8":
        ctypes.memmove(at, random.randbytes(n), n)
    else:
        scale = 1e-4 if a.name.startswith(b"s") else a.extent[a.ndims - 1] ** -0.5  # of int8 weights, or as weights begin
        values = (ctypes.c_float * (n // 4)).from_address(at)
        some = [random.uniform(-scale, scale) for _ in range(4093)]
        values[:] = (some * (n // 4 // 4093 + 1))[:n // 4]
    setattr(args, a.name.decode(), at)
check(prepare(ctypes.byref(args)))
x, y = args.X, args.y


class Stream:
    def __init__(self):
        self.at = block(entry("stream_bytes", ctypes.c_size_t)())
        check(init(ctypes.byref(args), ctypes.c_void_p(self.at)))

    def step(self, first, n):
        args.X, args.y, args.size_T = x + 4 * width * first, y + 4 * width * first, n
        start = time.perf_counter()
        check(step(ctypes.byref(args), ctypes.c_void_p(self.at)))
        return time.perf_counter() - start

    def states(self):
        """Address and bytes: keys, values, how many steps there were."""
        return [(state(ctypes.c_void_p(self.at), k), n) for k, n in enumerate((4 * most * width, 4 * most * width, 8))]


def out():
    return ctypes.string_at(y, 4 * width * tokens)


def same(what, expected):
    if out() != expected:
        sys.exit(f"{what}: other numbers")
    ctypes.memset(y, 0, 4 * width * tokens)


Stream().step(0, tokens)
whole = out()
ctypes.memset(y, 0, 4 * width * tokens)

one, middle = Stream(), tokens // 2
seconds = []
for t in range(tokens):
    if t == middle:
        saved = [ctypes.string_at(at, n) for at, n in one.states()]
    seconds.append(one.step(t, 1))
same("token by token", whole)

other = Stream()
other.step(0, tokens)  # something else before
for (at, n), content in zip(other.states(), saved):
    ctypes.memmove(at, content, n)
ctypes.memmove(y, whole, 4 * width * middle)
other.step(middle, tokens - middle)
same("after saving and restoring", whole)

cut = Stream()
for t in range(0, tokens, 7):
    cut.step(t, min(7, tokens - t))
same("seven at a time", whole)

try:  # no room for as many: refused, and the stream is as it was
    cut.step(0, most - tokens + 1)
    sys.exit("more tokens than there is room for")
except RuntimeError as e:
    print(f"beyond {most}: {e}")
check(init(ctypes.byref(args), ctypes.c_void_p(cut.at)))  # begun again
cut.step(0, tokens)
same("begun again", whole)
for first in range(0, tokens, max(1, tokens // 4)):
    part = seconds[first:first + max(1, tokens // 4)]
    print(f"tokens {first} to {first + len(part) - 1}: {1e6 * statistics.median(part):.1f} us each")
