"""Writes the models of this folder, with inputs, and what ONNX Runtime gives for them:
python3 make.py. Needs onnx, onnxruntime and numpy. tests/onnx_testdata.c runs them."""
import math, os
import numpy as np, onnx, onnx.reference, onnxruntime
from onnx import TensorProto as T, helper as h, numpy_helper as nh

rng = np.random.default_rng(7)
HERE = os.path.dirname(os.path.abspath(__file__))
TYPE = {'float32': T.FLOAT, 'int8': T.INT8, 'uint8': T.UINT8, 'int32': T.INT32, 'int64': T.INT64, 'bool': T.BOOL, 'uint32': T.UINT32}

def tensor(name, a): return nh.from_array(np.asarray(a), name)
def f(x): return np.float32(x)
def i8(*s): return rng.integers(-128, 128, s).astype(np.int8)
def u8(*s): return rng.integers(0, 256, s).astype(np.uint8)
def fl(*s): return rng.standard_normal(s).astype(np.float32)

def save(name, model, inputs, results):
    folder = os.path.join(HERE, name, 'test_data_set_0')
    os.makedirs(folder, exist_ok=True)
    onnx.save(model, os.path.join(HERE, name, 'model.onnx'))
    for what, arrays in (('input', inputs.values()), ('output', results)):
        for k, a in enumerate(arrays):
            with open(os.path.join(folder, '%s_%d.pb' % (what, k)), 'wb') as out: out.write(tensor('', a).SerializeToString())


def case(name, nodes, inputs, constants, outputs, opset=13, results=None, domains=None):
    """inputs, constants: name -> array; outputs: name -> type; results: instead of ONNX Runtime's; domains: what alone is imported"""
    graph = h.make_graph(nodes, name, [h.make_tensor_value_info(k, TYPE[str(v.dtype)], v.shape) for k, v in inputs.items()],
                         [h.make_tensor_value_info(k, t, None) for k, t in outputs.items()], [tensor(k, v) for k, v in constants.items()])
    model = h.make_model(graph, producer_name='isamap', opset_imports=[h.make_opsetid('', opset), h.make_opsetid('com.microsoft', 1)] + ([h.make_opsetid('ai.onnx.ml', 3)] if any(n.domain == 'ai.onnx.ml' for n in nodes) else []))
    if domains:
        del model.opset_import[:]
        model.opset_import.extend(h.make_opsetid(d, 1) for d in domains)
    model.ir_version = 8
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    results = results or onnxruntime.InferenceSession(model.SerializeToString(), options, providers=['CPUExecutionProvider']).run(None, inputs)
    save(name, model, inputs, results)

def ms(op, ins, outs=('y',), **a): return h.make_node(op, ins, list(outs), domain='com.microsoft', **a)

for name, op, t in (('qlinear_add_i8', 'QLinearAdd', i8), ('qlinear_add_u8', 'QLinearAdd', u8), ('qlinear_mul_i8', 'QLinearMul', i8), ('qlinear_mul_u8', 'QLinearMul', u8)):
    z = t(3)
    case(name, [ms(op, ['a', 'as', 'az', 'b', 'bs', 'bz', 'ys', 'yz'])], {'a': t(2, 3, 5), 'b': t(3, 1)},
         {'as': f(0.03), 'az': z[0], 'bs': f(0.05), 'bz': z[1], 'ys': f(0.07 if 'add' in name else 0.3), 'yz': z[2]}, {'y': TYPE[str(z.dtype)]})
case('qlinear_sigmoid', [ms('QLinearSigmoid', ['x', 'xs', 'xz', 'ys', 'yz'])], {'x': u8(4, 9)}, {'xs': f(0.05), 'xz': np.uint8(120), 'ys': f(1 / 256), 'yz': np.uint8(0)}, {'y': T.UINT8})
case('qlinear_leaky_relu', [ms('QLinearLeakyRelu', ['x', 'xs', 'xz', 'ys', 'yz'], alpha=0.2)], {'x': i8(4, 9)}, {'xs': f(0.05), 'xz': np.int8(12), 'ys': f(0.04), 'yz': np.int8(-3)}, {'y': T.INT8})
case('qlinear_softmax', [ms('QLinearSoftmax', ['x', 'xs', 'xz', 'ys', 'yz'], axis=-1, opset=13)], {'x': i8(3, 8)}, {'xs': f(0.02), 'xz': np.int8(1), 'ys': f(1 / 256), 'yz': np.int8(-128)}, {'y': T.INT8})
case('qlinear_global_average_pool', [ms('QLinearGlobalAveragePool', ['x', 'xs', 'xz', 'ys', 'yz'], channels_last=0)], {'x': u8(2, 3, 4, 5)},
     {'xs': f(0.05), 'xz': np.uint8(100), 'ys': f(0.02), 'yz': np.uint8(120)}, {'y': T.UINT8})
case('qlinear_concat', [ms('QLinearConcat', ['ys', 'yz', 'a', 'as', 'az', 'b', 'bs', 'bz'], axis=1)], {'a': u8(2, 3, 2), 'b': u8(2, 1, 2)},
     {'ys': f(0.05), 'yz': np.uint8(120), 'as': f(0.05), 'az': np.uint8(120), 'bs': f(0.03), 'bz': np.uint8(7)}, {'y': T.UINT8})
gemm = {'as': f(0.02), 'az': np.uint8(121), 'b': i8(5, 7), 'bs': (np.arange(5) * 0.01 + 0.01).astype(np.float32), 'bz': np.zeros(5, np.int8), 'c': rng.integers(-900, 900, 5).astype(np.int32)}
case('qgemm', [ms('QGemm', ['a', 'as', 'az', 'b', 'bs', 'bz', 'c', 'ys', 'yz'], transB=1)], {'a': u8(3, 7)}, dict(gemm, ys=f(0.09), yz=np.uint8(128)), {'y': T.UINT8})
case('qgemm_float', [ms('QGemm', ['a', 'as', 'az', 'b', 'bs', 'bz', 'c'], transB=1)], {'a': u8(3, 7)}, gemm, {'y': T.FLOAT})
case('matmul_integer_to_float', [ms('MatMulIntegerToFloat', ['a', 'b', 'as', 'bs', 'az', 'bz', 'c'])], {'a': u8(2, 3, 7)},
     {'b': i8(7, 5), 'as': f(0.02), 'bs': (np.arange(5) * 0.01 + 0.01).astype(np.float32), 'az': np.uint8(121), 'bz': np.zeros(5, np.int8), 'c': fl(5)}, {'y': T.FLOAT})
case('dynamic_quantize_matmul', [ms('DynamicQuantizeMatMul', ['a', 'b', 'bs', 'bz', 'c'])], {'a': fl(3, 7)}, {'b': u8(7, 5), 'bs': np.array([0.01], np.float32), 'bz': np.array([130], np.uint8), 'c': fl(5)}, {'y': T.FLOAT})
case('qlinear_conv_zero_points', [h.make_node('QLinearConv', ['x', 'xs', 'xz', 'w', 'ws', 'wz', 'ys', 'yz', 'b'], ['y'], pads=[1, 1, 1, 1])], {'x': u8(1, 2, 5, 5)},
     {'xs': f(0.02), 'xz': np.uint8(100), 'w': u8(3, 2, 3, 3), 'ws': f(0.01), 'wz': np.uint8(130), 'ys': f(0.05), 'yz': np.uint8(90), 'b': rng.integers(-900, 900, 3).astype(np.int32)}, {'y': T.UINT8})
case('qlinear_matmul_columns', [h.make_node('QLinearMatMul', ['a', 'as', 'az', 'b', 'bs', 'bz', 'ys', 'yz'], ['y'])], {'a': u8(2, 3, 7)},
     {'as': f(0.02), 'az': np.uint8(121), 'b': i8(7, 5), 'bs': (np.arange(5) * 0.01 + 0.01).astype(np.float32), 'bz': np.zeros(5, np.int8), 'ys': f(0.11), 'yz': np.uint8(128)}, {'y': T.UINT8})
case('conv_integer_groups', [h.make_node('ConvInteger', ['x', 'w', 'xz', 'wz'], ['y'], group=2, pads=[1, 0, 1, 0])], {'x': u8(1, 4, 5, 5)}, {'w': u8(6, 2, 3, 3), 'xz': np.uint8(100), 'wz': np.uint8(7)}, {'y': T.INT32})
case('average_pool_ceil_pads', [h.make_node('AveragePool', ['x'], ['y'], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1, count_include_pad=1)], {'x': fl(1, 2, 6, 6)}, {}, {'y': T.FLOAT}, 19)
case('max_pool_ceil_behind', [h.make_node('MaxPool', ['x'], ['y', 'i'], kernel_shape=[2, 2], strides=[3, 3], pads=[0, 0, 1, 1], ceil_mode=1)], {'x': fl(2, 2, 6, 7)}, {}, {'y': T.FLOAT, 'i': T.INT64})
case('max_pool_columns', [h.make_node('MaxPool', ['x'], ['y', 'i'], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 1, 1, 0], storage_order=1)], {'x': fl(2, 2, 6, 7)}, {}, {'y': T.FLOAT, 'i': T.INT64})
for mode in ('linear', 'nearest', 'cubic'):
    for padding in ('zeros', 'border', 'reflection'):
        for corners in (0, 1):
            case('grid_sample_%s_%s_%d' % (mode, padding, corners), [h.make_node('GridSample', ['x', 'g'], ['y'], mode=mode, padding_mode=padding, align_corners=corners)],
                 {'x': fl(2, 2, 4, 5), 'g': (rng.random((2, 3, 3, 2)) * 3 - 1.5).astype(np.float32)}, {}, {'y': T.FLOAT}, 20)
case('det_3', [h.make_node('Det', ['x'], ['y'])], {'x': fl(2, 3, 3)}, {}, {'y': T.FLOAT})
for op in ('Asin', 'Acos', 'Atan'):
    x = np.linspace(-1, 1, 9, dtype=np.float32) * (9 if op == 'Atan' else 1)
    case(op.lower() + '_ends', [h.make_node(op, ['x'], ['y'])], {'x': x}, {}, {'y': T.FLOAT})
case('prelu_channels', [h.make_node('PRelu', ['x', 's'], ['y'])], {'x': fl(2, 3, 4, 5)}, {'s': fl(3, 1, 1)}, {'y': T.FLOAT})

# Three layers, what ONNX Runtime gives for each, and the same with a second layer that is wrong.
x, w = fl(2, 6), fl(6, 4)
case('three_layers', [h.make_node('MatMul', ['x', 'w'], ['layer/1']), h.make_node('Tanh', ['layer/1'], ['layer/2']), h.make_node('Neg', ['layer/2'], ['y'])], {'x': x}, {'w': w}, {'y': T.FLOAT})
right = {'x': x, 'layer/1': x @ w, 'layer/2': np.tanh(x @ w), 'y': -np.tanh(x @ w), 'elsewhere': fl(3)}
here = os.path.join(HERE, 'three_layers')
np.savez(os.path.join(here, 'right.npz'), **right)
np.savez(os.path.join(here, 'wrong.npz'), **dict(right, **{'layer/2': right['layer/2'] + np.eye(2, 4, dtype=np.float32) / 8}))
np.savez_compressed(os.path.join(here, 'compressed.npz'), **right)

# What ONNX Runtime's optimisers fuse for transformers and convolutions.
def i32(*v): return np.array(v, np.int32)
case('bias_gelu', [ms('BiasGelu', ['x', 'b'])], {'x': fl(3, 6)}, {'b': fl(6)}, {'y': T.FLOAT})
case('fast_gelu', [ms('FastGelu', ['x', 'b'])], {'x': fl(3, 6)}, {'b': fl(6)}, {'y': T.FLOAT})
case('quick_gelu', [ms('QuickGelu', ['x'], alpha=1.5)], {'x': fl(3, 6)}, {}, {'y': T.FLOAT})
case('fused_matmul', [ms('FusedMatMul', ['a', 'b'], transA=1, transB=1, alpha=0.3)], {'a': fl(2, 5, 3), 'b': fl(4, 5)}, {}, {'y': T.FLOAT})
case('fused_gemm', [ms('FusedGemm', ['a', 'b', 'c'], transB=1, activation='LeakyRelu', activation_alpha=0.2)], {'a': fl(3, 5)}, {'b': fl(4, 5), 'c': fl(4)}, {'y': T.FLOAT})
w = {'w': fl(4, 2, 3, 3), 'b': fl(4)}
case('fused_conv', [ms('FusedConv', ['x', 'w', 'b', 'z'], pads=[1, 1, 1, 1], activation='Relu')], {'x': fl(1, 2, 5, 6), 'z': fl(1, 4, 5, 6)}, w, {'y': T.FLOAT})
case('fused_conv_clip', [ms('FusedConv', ['x', 'w', 'b'], strides=[2, 1], activation='Clip', activation_params=[-0.5, 0.75])], {'x': fl(1, 2, 5, 6)}, w, {'y': T.FLOAT})
case('fused_conv_sigmoid', [ms('FusedConv', ['x', 'w'], activation='HardSigmoid', activation_params=[0.25, 0.5])], {'x': fl(1, 2, 5, 6)}, w, {'y': T.FLOAT})
norm = {'g': fl(6), 'b': fl(6), 'c': fl(6)}
case('skip_layer_normalization', [ms('SkipLayerNormalization', ['x', 's', 'g', 'b', 'c'], ['y', '', '', 'sum'], epsilon=1e-5)], {'x': fl(2, 3, 6), 's': fl(2, 3, 6)}, norm, {'y': T.FLOAT, 'sum': T.FLOAT})
case('skip_simplified_layer_normalization', [ms('SkipSimplifiedLayerNormalization', ['x', 's', 'g'], ['y', '', '', 'sum'], epsilon=1e-5)], {'x': fl(2, 3, 6), 's': fl(2, 3, 6)}, norm, {'y': T.FLOAT, 'sum': T.FLOAT})
case('simplified_layer_normalization', [h.make_node('SimplifiedLayerNormalization', ['x', 'g'], ['y'], axis=-1, epsilon=1e-5, stash_type=1)], {'x': fl(2, 3, 6)}, norm, {'y': T.FLOAT})
case('embed_layer_normalization', [ms('EmbedLayerNormalization', ['ids', 'seg', 'w', 'p', 's', 'g', 'b', 'm'], ['y', 'n', 'sum'], epsilon=1e-5)],
     {'ids': rng.integers(0, 9, (2, 4)).astype(np.int32), 'seg': rng.integers(0, 2, (2, 4)).astype(np.int32), 'm': np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)},
     dict(norm, w=fl(9, 6), p=fl(5, 6), s=fl(2, 6)), {'y': T.FLOAT, 'n': T.INT32, 'sum': T.FLOAT})
part = {'w': fl(6, 24), 'b': fl(24)}
case('attention', [ms('Attention', ['x', 'w', 'b', 'm'], num_heads=2)], {'x': fl(2, 5, 6), 'm': i32(5, 3)}, part, {'y': T.FLOAT})
case('attention_raw_mask', [ms('Attention', ['x', 'w', 'b', 'm', '', 'a'], num_heads=2)], {'x': fl(2, 3, 6), 'm': i32(1, 1, 0, 1, 0, 0).reshape(2, 3), 'a': fl(1, 2, 3, 3)}, part, {'y': T.FLOAT})
case('attention_causal_past', [ms('Attention', ['x', 'w', 'b', '', 'p'], ['y', 'q'], num_heads=2, unidirectional=1)], {'x': fl(2, 3, 6), 'p': fl(2, 2, 2, 2, 4)}, part, {'y': T.FLOAT, 'q': T.FLOAT})
case('attention_widths', [ms('Attention', ['x', 'w', 'b'], num_heads=2, qkv_hidden_sizes=[8, 8, 4])], {'x': fl(1, 3, 6)}, {'w': fl(6, 20), 'b': fl(20)}, {'y': T.FLOAT})
case('qattention', [ms('QAttention', ['x', 'w', 'b', 'xs', 'ws', 'm', 'xz', 'wz'], num_heads=2)], {'x': u8(2, 3, 6), 'm': i32(3, 2)},
     {'w': i8(6, 24), 'b': fl(24), 'xs': f(0.01), 'ws': f(0.02), 'xz': np.uint8(120), 'wz': np.int8(0)}, {'y': T.FLOAT})
qkv = {'q': fl(2, 3, 8), 'k': fl(2, 5, 8), 'v': fl(2, 5, 8)}
case('multi_head_attention', [ms('MultiHeadAttention', ['q', 'k', 'v', 'b', 'm'], num_heads=2)], dict(qkv, m=i32(1, 1, 1, 1, 1, 1, 1, 0, 0, 1).reshape(2, 5)), {'b': fl(24)}, {'y': T.FLOAT})
case('multi_head_attention_cache', [ms('MultiHeadAttention', ['q', 'k', 'v', '', '', 'a', 'pk', 'pv'], ['y', 'k2', 'v2'], num_heads=2, unidirectional=1)],
     {'q': fl(2, 3, 8), 'k': fl(2, 3, 8), 'v': fl(2, 3, 8), 'a': fl(2, 1, 3, 5), 'pk': fl(2, 2, 2, 4), 'pv': fl(2, 2, 2, 4)}, {}, {'y': T.FLOAT, 'k2': T.FLOAT, 'v2': T.FLOAT})
case('multi_head_attention_cross', [ms('MultiHeadAttention', ['q', 'k', 'v'], num_heads=2)], {'q': fl(2, 3, 8), 'k': fl(2, 2, 5, 4), 'v': fl(2, 2, 5, 4)}, {}, {'y': T.FLOAT})
angles = {'c': fl(9, 4), 's': fl(9, 4)}
case('rotary_embedding', [ms('RotaryEmbedding', ['x', 'p', 'c', 's'])], {'x': fl(2, 3, 16), 'p': rng.integers(0, 9, (2, 3))}, angles, {'y': T.FLOAT})
case('rotary_embedding_first', [ms('RotaryEmbedding', ['x', 'p', 'c', 's'], interleaved=1)], {'x': fl(2, 2, 3, 8), 'p': np.array([4])}, angles, {'y': T.FLOAT})
case('rotary_embedding_part', [ms('RotaryEmbedding', ['x', 'p', 'c', 's'], num_heads=2, rotary_embedding_dim=8)], {'x': fl(2, 3, 24), 'p': np.array([[0, 1, 2], [3, 4, 5]])}, angles, {'y': T.FLOAT})

# GroupQueryAttention: seqlens_k is the last place of each sequence; with a batch of several it is data.
def gqa(name, batch, rows, past, buffer, inputs=(), rotary=0, **a):
    heads, shared, depth = 4, 2, 16
    x = {'q': fl(batch, rows, heads * depth), 'k': fl(batch, rows, shared * depth), 'v': fl(batch, rows, shared * depth)}
    c = {'n': i32(past + rows)}
    last = i32(*[past + rows - 1 - (i if past else 0) for i in range(batch)])
    if buffer: x.update(pk=fl(batch, shared, buffer, depth), pv=fl(batch, shared, buffer, depth))
    c.update(cos=fl(16, depth // 2), sin=fl(16, depth // 2))
    x['l'] = last
    if 'a' in inputs: x['a'] = fl(batch, 1, rows, past + rows)
    if 's' in inputs: c['s'] = fl(heads)
    case(name, [ms('GroupQueryAttention', ['q', 'k', 'v', 'pk' if buffer else '', 'pv' if buffer else '', 'l', 'n'] + (['cos', 'sin'] if rotary else ['', '']) + ['', 'a' if 'a' in inputs else ''] + (['s', '', ''] if 's' in inputs else []),
                   ['y', 'k2', 'v2'], num_heads=heads, kv_num_heads=shared, do_rotary=rotary, **a)], x, c, {'y': T.FLOAT, 'k2': T.FLOAT, 'v2': T.FLOAT})
gqa('group_query_attention', 1, 5, 0, 0)
gqa('group_query_attention_step', 1, 1, 6, 6, rotary=1)
gqa('group_query_attention_chunk', 1, 3, 4, 4, rotary=1, rotary_interleaved=1)
gqa('group_query_attention_batch', 2, 1, 6, 6, rotary=1)
gqa('group_query_attention_buffer', 2, 1, 6, 9)
gqa('group_query_attention_window', 1, 5, 0, 0, local_window_size=3)
gqa('group_query_attention_softcap', 1, 3, 2, 2, softcap=2.0, scale=0.4)
gqa('group_query_attention_bias', 1, 3, 2, 2, ('a',))
for bits, size, zero in ((4, 16, None), (4, 32, 'u8'), (8, 16, 'u8'), (4, 16, 'f')):
    rows, depth, count = 6, 40, -(-40 // size)
    c = {'b': u8(rows, count, size * bits // 8), 's': (rng.random(rows * count) * 0.1).astype(np.float32)}
    if zero == 'u8': c['z'] = u8(rows * -(-count * bits // 8))
    if zero == 'f': c['z'] = fl(rows * count)
    case('matmul_nbits_%d_%d%s' % (bits, size, '_' + zero if zero else ''), [ms('MatMulNBits', ['x', 'b', 's'] + (['z'] if zero else []), K=depth, N=rows, bits=bits, block_size=size)],
         {'x': fl(2, 3, depth)}, c, {'y': T.FLOAT})
for name, ins in (('qlinear_mul_number', ['a', 'as', 'az', 'b', 'bs', 'bz', 'ys', 'yz']), ('qlinear_mul_number_first', ['b', 'bs', 'bz', 'a', 'as', 'az', 'ys', 'yz'])):
    case(name, [ms('QLinearMul', ins)], {'a': u8(2, 3, 5)},
         {'as': f(0.03), 'az': np.uint8(131), 'b': np.uint8(255), 'bs': f(0.5 / 255), 'bz': np.uint8(0), 'ys': f(0.02), 'yz': np.uint8(10)}, {'y': T.UINT8})

# Long axes are walked in order. Ties: the lower index first; NaNs are above all numbers, as in ONNX's reference.
def top(x, k, axis, largest):
    i = np.arange(x.shape[axis]).reshape([-1 if d == axis else 1 for d in range(x.ndim)]) + np.zeros(x.shape, np.int64)
    order = np.lexsort((-i if largest else i, x), axis=axis)
    order = np.take(np.flip(order, axis) if largest else order, np.arange(k), axis=axis)
    return [np.take_along_axis(x, order, axis), order]
with_nans = rng.integers(-20, 20, (2, 290)).astype(np.float32)
with_nans[:, ::37], with_nans[0, 5], with_nans[1, 6] = np.nan, np.inf, -np.inf
for name, x, k, axis, largest in (('top_k_long', rng.integers(-30, 30, (2, 300)).astype(np.float32), 9, -1, 1), ('top_k_long_smallest', i8(3, 400, 2), 300, 1, 0), ('top_k_long_all', i8(270), 270, 0, 1),
                                  ('top_k_long_least_i8', np.full((1, 260), -128, np.int8), 3, 1, 1), ('top_k_long_nan', with_nans, 12, 1, 1), ('top_k_long_nan_smallest', with_nans, 290, 1, 0),
                                  ('top_k_nan', with_nans[:, :80], 6, 1, 1), ('top_k_nan_smallest', with_nans[:, :80], 80, 1, 0)):
    expected = top(x, k, axis % x.ndim, largest)
    if x.dtype == np.float32 and not np.isnan(x).any(): expected = None
    case(name, [h.make_node('TopK', ['x', 'k'], ['v', 'i'], axis=axis, largest=largest)], {'x': x}, {'k': np.array([k])}, {'v': TYPE[str(x.dtype)], 'i': T.INT64}, results=expected)
for name, options in (('cum_sum_long', {}), ('cum_sum_long_exclusive', {'exclusive': 1}), ('cum_sum_long_reverse', {'reverse': 1}), ('cum_sum_long_both', {'exclusive': 1, 'reverse': 1})):
    case(name, [h.make_node('CumSum', ['x', 'axis'], ['y'], **options)], {'x': rng.integers(-9, 9, (2, 300, 3)).astype(np.float32)}, {'axis': np.array(1)}, {'y': T.FLOAT}, 14)

# ONNX's own attention and rotary positions
def att(name, inputs, constants={}, outs=('y',), opset=23, **a):
    names = ['q', 'k', 'v', 'mask', 'past_k', 'past_v', 'lengths']
    ins = [n if n in inputs or n in constants else '' for n in names]
    while not ins[-1]: ins.pop()
    case(name, [h.make_node('Attention', ins, list(outs), **a)], inputs, constants, {k: T.FLOAT for k in outs if k}, opset)
att('scaled_attention', {'q': fl(2, 3, 12), 'k': fl(2, 5, 12), 'v': fl(2, 5, 6)}, q_num_heads=3, kv_num_heads=3)
att('scaled_attention_shared_cap', {'q': fl(2, 4, 3, 8), 'k': fl(2, 2, 3, 8), 'v': fl(2, 2, 3, 8), 'past_k': fl(2, 2, 4, 8), 'past_v': fl(2, 2, 4, 8)}, outs=('y', 'pk', 'pv'), is_causal=1, softcap=2.0, scale=0.5)
att('scaled_attention_truths', {'q': fl(2, 3, 4, 8), 'k': fl(2, 3, 6, 8), 'v': fl(2, 3, 6, 5)}, {'mask': rng.integers(0, 2, (4, 6)) + np.eye(4, 6) > 0})
att('scaled_attention_mask', {'q': fl(2, 3, 4, 8), 'k': fl(2, 3, 6, 8), 'v': fl(2, 3, 6, 5), 'mask': fl(2, 1, 4, 6)}, outs=('y', '', '', 's'), qk_matmul_output_mode=1)
for name, n, at, options in (('rotary', 4, 1, {}), ('rotary_part', 3, 1, {'interleaved': 1, 'rotary_embedding_dim': 4, 'num_heads': 3}), ('rotary_everywhere', 4, 0, {'interleaved': 1})):
    half = 2 if 'part' in name else 4
    case(name, [h.make_node('RotaryEmbedding', ['x', 'cos', 'sin'] + ['at'] * at, ['y'], **options)], {'x': fl(2, 3, 5, 8) if n == 4 else fl(2, 5, 24), **({'at': rng.integers(0, 9, (2, 5))} if at else {})},
         {'cos': fl(*([9, half] if at else [2, 5, half])), 'sin': fl(*([9, half] if at else [2, 5, half]))}, {'y': T.FLOAT}, 23)

# Further forms of quantised tensors; windows' norms; the middle of a tensor; a part without elements
case('qlinear_where', [ms('QLinearWhere', ['c', 'a', 'as', 'az', 'b', 'bs', 'bz', 'ys', 'yz'])], {'c': rng.integers(0, 2, (2, 1, 5)).astype(bool), 'a': u8(2, 3, 5), 'b': u8(3, 1)},
     {'as': f(0.03), 'az': np.uint8(7), 'bs': f(0.05), 'bz': np.uint8(90), 'ys': f(0.07), 'yz': np.uint8(100)}, {'y': T.UINT8})
quantised = {k: u8(*s) for k, s in (('word', (9, 8)), ('place', (6, 8)), ('segment', (2, 8)), ('gamma', (8,)), ('beta', (8,)))}
scales = {k + '_scale': f(0.01 * (i + 1)) for i, k in enumerate(quantised)}
zeros = {k + '_zero': np.uint8(100 + i) for i, k in enumerate(quantised)}
case('qembed_layer_normalization', [ms('QEmbedLayerNormalization', ['ids', 'kinds', *quantised, 'mask', *scales, *zeros], ('y', 'n'))],
     {'ids': rng.integers(0, 9, (2, 5)).astype(np.int32), 'kinds': rng.integers(0, 2, (2, 5)).astype(np.int32), 'mask': np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)}, {**quantised, **scales, **zeros}, {'y': T.FLOAT, 'n': T.INT32})
for name, bits, zero in (('gather_block_quantized', 4, True), ('gather_block_quantized_8', 8, False)):
    each = 8 // bits
    case(name, [ms('GatherBlockQuantized', ['t', 'i', 's'] + ['z'] * zero, bits=bits, block_size=16, gather_axis=0, quantize_axis=1)], {'i': np.array([[3, 0], [6, 5]])},
         {'t': u8(7, 48 // each), 's': fl(7, 3), **({'z': u8(7, 2)} if zero else {})}, {'y': T.FLOAT})
for p in (1, 2, 3): case('lp_pool_%d' % p, [h.make_node('LpPool', ['x'], ['y'], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1], p=p)], {'x': fl(2, 3, 7, 6)}, {}, {'y': T.FLOAT}, 18)
x = fl(4, 7, 5)
case('center_crop_pad', [h.make_node('CenterCropPad', ['x', 's'], ['y'], axes=[0, -1])], {'x': x}, {'s': np.array([9, 2])}, {'y': T.FLOAT}, 18, results=[np.pad(x[:, :, 1:3], ((2, 3), (0, 0), (0, 0)))])
case('split_nothing', [h.make_node('Split', ['x', 's'], ['a', 'b', 'c'], axis=1), h.make_node('Concat', ['c', 'b', 'a'], ['y'], axis=1)], {'x': fl(2, 5)}, {'s': np.array([2, 0, 3])}, {'y': T.FLOAT})

# A cache with new rows; recurrent weights of bytes, against the LSTM of what they stand for
from onnx.reference import ReferenceEvaluator
for name, mode, places in (('tensor_scatter', 'linear', [3, 0]), ('tensor_scatter_circular', 'circular', [5, 2])):
    nodes, inputs = [h.make_node('TensorScatter', ['x', 'u', 'w'], ['y'], mode=mode)], {'x': fl(2, 3, 6, 4), 'u': fl(2, 3, 3, 4), 'w': np.array(places)}
    graph = h.make_graph(nodes, name, [h.make_tensor_value_info(k, TYPE[str(v.dtype)], v.shape) for k, v in inputs.items()], [h.make_tensor_value_info('y', T.FLOAT, None)])
    case(name, nodes, inputs, {}, {'y': T.FLOAT}, 24, results=ReferenceEvaluator(h.make_model(graph, opset_imports=[h.make_opsetid('', 24)])).run(None, inputs))
H, I, N, steps = 5, 4, 2, 3
x, w, r, b = fl(steps, N, I), i8(2, I, 4 * H), i8(2, H, 4 * H), fl(2, 8 * H)
ws, rs, wz, rz = f(0.01) * np.arange(1, 3, dtype=np.float32), f(0.002) * np.arange(1, 8 * H + 1, dtype=np.float32).reshape(2, 4 * H) / 20, i8(2), np.zeros((2, 4 * H), np.int8)
case('dynamic_quantize_lstm', [ms('DynamicQuantizeLSTM', ['x', 'w', 'r', 'b', '', '', '', '', 'ws', 'wz', 'rs', 'rz'], ('y', 'h'), hidden_size=H, direction='bidirectional')], {'x': x},
     {'w': w, 'r': r, 'b': b, 'ws': ws, 'wz': wz, 'rs': rs, 'rz': rz}, {'y': T.FLOAT, 'h': T.FLOAT}, 14)

del quantised['segment'], scales['segment_scale'], zeros['segment_zero']
case('qembed_layer_normalization_words', [ms('QEmbedLayerNormalization', ['ids', '', 'word', 'place', '', 'gamma', 'beta', '', 'word_scale', 'place_scale', '', 'gamma_scale', 'beta_scale', 'word_zero', 'place_zero', '', 'gamma_zero', 'beta_zero'], ('y', 'n'))],
     {'ids': rng.integers(0, 9, (2, 5)).astype(np.int32)}, {**quantised, **scales, **zeros}, {'y': T.FLOAT, 'n': T.INT32})

# Fourier transforms: real, complex, inverse, longer and shorter than the axis, of frames; grids
def known(**a): return {k: np.array(v) for k, v in a.items()}
case('dft_real', [h.make_node('DFT', ['x'], ['y'], axis=1, onesided=1)], {'x': fl(2, 9, 1)}, {}, {'y': T.FLOAT}, 17)
case('dft_complex', [h.make_node('DFT', ['x', '', 'a'], ['y'])], {'x': fl(2, 7, 3, 2)}, known(a=1), {'y': T.FLOAT}, 20)
case('dft_inverse', [h.make_node('DFT', ['x'], ['y'], axis=1, inverse=1)], {'x': fl(2, 8, 2)}, {}, {'y': T.FLOAT}, 17)
case('dft_longer', [h.make_node('DFT', ['x', 'n'], ['y'], axis=1)], {'x': fl(2, 6, 1)}, known(n=11), {'y': T.FLOAT}, 17)
case('dft_shorter', [h.make_node('DFT', ['x', 'n'], ['y'], axis=1)], {'x': fl(2, 6, 2)}, known(n=4), {'y': T.FLOAT}, 17)
case('stft_window', [h.make_node('STFT', ['x', 's', 'w'], ['y'])], {'x': fl(2, 40, 1)}, dict(known(s=5), w=np.hanning(16).astype(np.float32)), {'y': T.FLOAT}, 17)
case('stft_frames', [h.make_node('STFT', ['x', 's', '', 'n'], ['y'], onesided=0)], {'x': fl(1, 31, 1)}, known(s=8, n=12), {'y': T.FLOAT}, 17)
for corners in (0, 1):
    case('affine_grid_%d' % corners, [h.make_node('AffineGrid', ['t', 's'], ['y'], align_corners=corners)], {'t': fl(2, 2, 3)}, known(s=[2, 3, 4, 5]), {'y': T.FLOAT}, 20)
case('affine_grid_3d', [h.make_node('AffineGrid', ['t', 's'], ['y'], align_corners=1)], {'t': fl(1, 3, 4)}, known(s=[1, 2, 3, 4, 5]), {'y': T.FLOAT}, 20)

# Convolutions moved by data, parts of an image, blocks that overlap
x, w = fl(2, 4, 5, 6), fl(6, 2, 3, 2)
def offsets(*s): return (rng.standard_normal(s) * 2).astype(np.float32)
def deform_case(name, inputs, constants, **a):
    """ONNX Runtime has no DeformConv on every computer; ONNX's own reference does."""
    node = h.make_node('DeformConv', list('xwobm')[:len(inputs) + len(constants)], ['y'], **a)
    arrays = {**inputs, **constants}
    graph = h.make_graph([node], name, [h.make_tensor_value_info(k, T.FLOAT, v.shape) for k, v in arrays.items()], [h.make_tensor_value_info('y', T.FLOAT, None)])
    results = onnx.reference.ReferenceEvaluator(h.make_model(graph, opset_imports=[h.make_opsetid('', 19)])).run(None, arrays)
    case(name, [node], inputs, constants, {'y': T.FLOAT}, 19, results=[np.asarray(r, np.float32) for r in results])
deform = dict(kernel_shape=[3, 2], pads=[1, 0, 1, 1], strides=[2, 1], dilations=[1, 2])
deform_case('deform_conv', {'x': x, 'o': offsets(2, 24, 3, 5), 'm': fl(2, 12, 3, 5)}, {'w': w, 'b': fl(6)}, group=2, offset_group=2, **deform)
deform_case('deform_conv_plain', {'x': x, 'o': offsets(2, 12, 3, 5)}, {'w': fl(3, 4, 3, 2)}, kernel_shape=[3, 2], pads=[0] * 4)
boxes = np.array([[1, 1, 6, 5], [-3, 0, 40, 9], [2, 2, 2, 2], [5, 4, 1, 1]], np.float32)
for name, a in (('avg', dict(sampling_ratio=2)), ('max', dict(sampling_ratio=3, mode='max')), ('edges', dict(sampling_ratio=2, coordinate_transformation_mode='output_half_pixel'))):
    case('roi_align_' + name, [h.make_node('RoiAlign', ['x', 'r', 'i'], ['y'], output_height=2, output_width=3, spatial_scale=0.8, **a)], {'x': x, 'r': boxes, 'i': np.array([0, 1, 1, 0])}, {}, {'y': T.FLOAT}, 16)
case('roi_align_sized', [h.make_node('RoiAlign', ['x', 'r', 'i'], ['y'], output_height=2, output_width=3)], {'x': x}, {'r': boxes[:3], 'i': np.array([0, 1, 1])}, {'y': T.FLOAT}, 16)
case('col2im', [h.make_node('Col2Im', ['x', 's', 'k'], ['y'], strides=[2, 1], dilations=[1, 2], pads=[1, 0, 1, 1])], {'x': fl(2, 12, 15)}, known(s=[5, 6], k=[3, 2]), {'y': T.FLOAT}, 18)
case('nothing', [h.make_node('Slice', ['x', 'a', 'a', 'one'], ['none']), h.make_node('Relu', ['none'], ['still']), h.make_node('Concat', ['still', 'x', 'none'], ['y'], axis=1), h.make_node('Shape', ['still'], ['n'])],
     {'x': fl(2, 3)}, known(a=[2], one=[1]), {'y': T.FLOAT, 'n': T.INT64})

# The window's elements by phase, from the last to the first
for name, a in (('conv_transpose_phases', dict(strides=[2, 2], pads=[1, 1, 1, 1])), ('conv_transpose_groups', dict(strides=[3, 1], group=2, output_padding=[1, 0]))):
    case(name, [h.make_node('ConvTranspose', ['x', 'w', 'b'], ['y'], **a)], {'x': fl(1, 8, 5, 6)}, {'w': fl(8, 24, 4, 4), 'b': fl(24 * a.get('group', 1))}, {'y': T.FLOAT}, 11)
case('conv_groups', [h.make_node('Conv', ['x', 'w', 'b'], ['y'], pads=[1, 0, 1, 2], strides=[2, 1], group=4)], {'x': fl(2, 12, 7, 8)}, {'w': fl(20, 3, 3, 3), 'b': fl(20)}, {'y': T.FLOAT}, 11)

# Scales for blocks; weights of 4 bits, two in a byte
def halves(name, kind, a): return h.make_tensor(name, kind, a.shape, a.flatten())
def blocks(name, weights, constants, outputs, nodes, x=None):
    x = {'x': fl(3, 64) if x is None else x}
    graph = h.make_graph(nodes, name, [h.make_tensor_value_info('x', h.np_dtype_to_tensor_dtype(x['x'].dtype), x['x'].shape)], [h.make_tensor_value_info(k, t, None) for k, t in outputs.items()], weights + [tensor(k, v) for k, v in constants.items()])
    model = h.make_model(graph, producer_name='isamap', opset_imports=[h.make_opsetid('', 21)])
    model.ir_version = 10
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    results = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=['CPUExecutionProvider']).run(None, x)
    folder = os.path.join(HERE, name, 'test_data_set_0')
    os.makedirs(folder, exist_ok=True)
    onnx.save(model, os.path.join(HERE, name, 'model.onnx'))
    for what, arrays in (('input', [x['x']]), ('output', results)):
        for k, a in enumerate(arrays):
            with open(os.path.join(folder, '%s_%d.pb' % (what, k)), 'wb') as out: out.write(tensor('', a).SerializeToString())
steps = (rng.random((4, 5)) * 0.1 + 0.01).astype(np.float32)
opened = [h.make_node('DequantizeLinear', ['w', 's', 'z'], ['f'], axis=0, block_size=16), h.make_node('MatMul', ['x', 'f'], ['y'])]
blocks('dequantize_blocks_i4', [halves('w', T.INT4, rng.integers(-8, 8, (64, 5))), halves('z', T.INT4, rng.integers(-8, 8, (4, 5)))], {'s': steps}, {'y': T.FLOAT}, opened)
blocks('dequantize_blocks_u4', [halves('w', T.UINT4, rng.integers(0, 16, (64, 5))), halves('z', T.UINT4, rng.integers(0, 16, (4, 5)))], {'s': steps}, {'y': T.FLOAT}, opened)
blocks('quantize_blocks', [], {'s': (rng.random((3, 4)) * 0.1 + 0.01).astype(np.float32)}, {'y': T.INT8}, [h.make_node('QuantizeLinear', ['x', 's'], ['y'], axis=1, block_size=16, output_dtype=T.INT8)])

# Operators of the newest opsets, with the results of ONNX's own reference
def newest(name, nodes, inputs, outputs, opset=28):
    graph = h.make_graph(nodes, name, [h.make_tensor_value_info(k, h.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in inputs.items()], [h.make_tensor_value_info(k, t, None) for k, t in outputs.items()])
    model = h.make_model(graph, producer_name='isamap', opset_imports=[h.make_opsetid('', opset)])
    results = onnx.reference.ReferenceEvaluator(model).run(None, inputs)
    save(name, model, inputs, results)
numbers = np.array([5, -5, 5.5, -5.5, 0, 3, -3, 1e-3], np.float32)
newest('mod_floats', [h.make_node('Mod', ['a', 'b'], ['y'])], {'a': numbers, 'b': np.array([3, 3, -3, -3, -3, np.inf, np.inf, -2], np.float32)}, {'y': T.FLOAT})
newest('shift_signed', [h.make_node('BitShift', ['a', 'b'], ['y'], direction='RIGHT'), h.make_node('BitShift', ['a', 'b'], ['z'], direction='LEFT')],
       {'a': np.array([-7, 7, -7, 7, -7, 100], np.int8), 'b': np.array([1, 1, 9, 8, -1, 3], np.int8)}, {'y': T.INT8, 'z': T.INT8})
newest('swiglu', [h.make_node('SwiGLU', ['a', 'b'], ['y'], alpha=1.5)], {'a': fl(3, 4), 'b': fl(3, 4)}, {'y': T.FLOAT})
newest('causal_conv', [h.make_node('CausalConvWithState', ['x', 'w', 'b', 'p'], ['y', 's'], activation='silu')], {'x': fl(2, 3, 5), 'w': fl(3, 1, 4), 'b': fl(3), 'p': fl(2, 3, 3)}, {'y': T.FLOAT, 's': T.FLOAT}, 27)
for name, rows, a in (('cum_prod', 5, dict(exclusive=1)), ('cum_prod_long', 300, dict(reverse=1))):
    x = (1 + 0.1 * rng.standard_normal((rows, 3))).astype(np.float32)
    newest(name, [h.make_node('Constant', [], ['d'], value_int=0), h.make_node('CumProd', ['x', 'd'], ['y'], **a)], {'x': x}, {'y': T.FLOAT}, 26)

# ai.onnx.ml: scalers, linear models, trees.
def ml(name, op, x, outputs, **a): case(name, [h.make_node(op, ['x'], list(outputs), domain='ai.onnx.ml', **a)], {'x': x}, {}, outputs, 15)
score, both = {'y': T.FLOAT}, {'l': T.INT64, 'y': T.FLOAT}
ml('ml_scaler', 'Scaler', fl(4, 3), score, offset=[0.5, -1.0, 2.0], scale=[2.0, 0.5, 1.5])
ml('ml_scaler_integers', 'Scaler', np.arange(12).reshape(4, 3), score, offset=[3.0], scale=[0.25])
ml('ml_binarizer', 'Binarizer', fl(4, 3), score, threshold=0.25)
rows = np.concatenate([fl(4, 5), np.zeros((1, 5), np.float32)])
for norm in ('MAX', 'L1', 'L2'): ml('ml_normalizer_' + norm.lower(), 'Normalizer', rows[:4] if norm == 'MAX' else rows, score, norm=norm)
numbers = lambda n: [float(v) for v in fl(n)]
ml('ml_linear_regressor', 'LinearRegressor', fl(4, 3), score, coefficients=numbers(6), intercepts=numbers(2), targets=2)
ml('ml_linear_classifier', 'LinearClassifier', fl(6, 3), both, coefficients=numbers(9), intercepts=numbers(3), classlabels_ints=[7, 3, 5], post_transform='SOFTMAX', multi_class=1)
ml('ml_linear_two_classes', 'LinearClassifier', fl(6, 3), both, coefficients=numbers(6), intercepts=numbers(2), classlabels_ints=[0, 1], post_transform='LOGISTIC')

def trees(depths, features, scores, what, one=False, lowest=-1.0, any_one=False):
    """Full and ragged trees with random nodes; leaves of all scores, of the first one, or each of any one."""
    n = {k: [] for k in ('treeids', 'nodeids', 'featureids', 'modes', 'values', 'truenodeids', 'falsenodeids', 'missing_value_tracks_true')}
    w = {k: [] for k in ('treeids', 'nodeids', 'ids', 'weights')}
    def node(tree, ids, depth):
        me = ids[0]
        ids[0] += 1
        leaf = depth == 0 or (me and rng.random() < 0.2)
        at = len(n['treeids'])
        for k, v in zip(n, (tree, me, 0 if leaf else int(rng.integers(features)), 'LEAF' if leaf else 'BRANCH_LEQ', 0.0 if leaf else float(fl(1)[0]), 0, 0, int(not leaf and rng.random() < 0.5))): n[k].append(v)
        if leaf:
            for s in [0] if one else [int(rng.integers(scores))] if any_one else range(scores):
                for k, v in zip(w, (tree, me, s, float(rng.random() * (1 - lowest) + lowest))): w[k].append(v)
        else:
            n['truenodeids'][at] = node(tree, ids, depth - 1)
            n['falsenodeids'][at] = node(tree, ids, depth - 1)
        return me
    for tree, depth in enumerate(depths): node(tree, [0], depth)
    return dict({'nodes_' + k: v for k, v in n.items()}, **{what + '_' + k: v for k, v in w.items()})

x = fl(9, 4)
x[2, 1] = x[5, 3] = np.nan
ml('ml_trees_regressor', 'TreeEnsembleRegressor', x, score, n_targets=2, base_values=[0.5, -1.0], **trees([3, 5, 1, 0], 4, 2, 'target'))
ml('ml_trees_mean', 'TreeEnsembleRegressor', x, score, n_targets=1, aggregate_function='AVERAGE', **trees([3, 4, 4], 4, 1, 'target'))
ml('ml_trees_classifier', 'TreeEnsembleClassifier', x, both, classlabels_int64s=[4, 2, 9], post_transform='SOFTMAX', **trees([4, 3, 2], 4, 3, 'class'))
ml('ml_trees_two_classes', 'TreeEnsembleClassifier', x, both, classlabels_int64s=[0, 1], post_transform='LOGISTIC', **trees([3, 3], 4, 1, 'class', True))
ml('ml_trees_probability', 'TreeEnsembleClassifier', x, both, classlabels_int64s=[5, 6], **trees([3, 3], 4, 1, 'class', True, 0.0))

# Few of a long axis: lists side by side. Ties, ends of the type, the middle of a tensor; lengths that are no multiple of the lists.
for name, x, k, axis, largest in (('top_k_lists_nan', with_nans, 4, 1, 1), ('top_k_lists_nan_smallest', with_nans, 4, 1, 0), ('top_k_lists_middle', i8(2, 600, 2), 2, 1, 0), ('top_k_lists_short', rng.integers(-9, 9, (3, 70)).astype(np.float32), 1, 1, 1), ('top_k_lists_least', np.full((261, 2), -128, np.int8), 1, 0, 1)):
    case(name, [h.make_node('TopK', ['x', 'k'], ['v', 'i'], axis=axis, largest=largest)], {'x': x}, {'k': np.array([k])}, {'v': TYPE[str(x.dtype)], 'i': T.INT64}, results=top(x, k, axis, largest))

# Cells of 16-bit floats, against the same cells in f32, which ONNX Runtime has
halves = np.random.default_rng(16)
TYPE['float16'] = T.FLOAT16
def half_cell(op, gates, states, extra, **a):
    steps, N, I, H, D = 6, 3, 9, 17, 2 if a.get('direction') == 'bidirectional' else 1
    shapes = {'x': (steps, N, I), 'w': (D, gates * H, I), 'r': (D, gates * H, H), 'b': (D, 2 * gates * H), 'h0': (D, N, H), 'c0': (D, N, H), 'p': (D, 3 * H)}
    values = {k: (halves.standard_normal(s) * (1 if k == 'x' else 0.4)).astype(np.float16) for k, s in shapes.items()}
    values['n'] = np.array([6, 2, 4], np.int32)
    names, ends = ['x', 'w', 'r', 'b', 'n', 'h0'] + extra, ['y', 'h', 'c'][:1 + states]
    def parts(t): return ([h.make_node(op, names, ends, hidden_size=H, **a)], {k: values[k].astype(t) for k in ('x', 'h0')}, {**{k: values[k].astype(t) for k in names if k not in ('x', 'h0', 'n')}, 'n': values['n']})
    nodes, inputs, constants = parts(np.float32)
    graph = h.make_graph(nodes, op, [h.make_tensor_value_info(k, T.FLOAT, v.shape) for k, v in inputs.items()], [h.make_tensor_value_info(k, T.FLOAT, None) for k in ends], [tensor(k, v) for k, v in constants.items()])
    model = h.make_model(graph, opset_imports=[h.make_opsetid('', 17)], ir_version=8)
    results = [r.astype(np.float16) for r in onnxruntime.InferenceSession(model.SerializeToString(), providers=['CPUExecutionProvider']).run(None, inputs)]
    nodes, inputs, constants = parts(np.float16)
    case(op.lower() + '_halves', nodes, inputs, constants, {k: T.FLOAT16 for k in ends}, 17, results=results)
half_cell('RNN', 1, 1, [], direction='reverse')
half_cell('GRU', 3, 1, [], linear_before_reset=1)
half_cell('LSTM', 4, 2, ['c0', 'p'], direction='bidirectional')

# Places that updates reach in part of the input only; values that are not finite; integers and truths where floats are usual.
places = np.array([[[3, 0], [1, 4]], [[2, -1], [0, 1]]])
for name, options, opset in (('scatter_elements_part', {}, 13), ('scatter_elements_part_add', {'reduction': 'add'}, 16)):
    case(name, [h.make_node('ScatterElements', ['x', 'i', 'u'], ['y'], axis=2, **options)], {'x': fl(3, 4, 5), 'i': places, 'u': fl(2, 2, 2)}, {}, {'y': T.FLOAT}, opset)
ends = np.array([-np.inf, -1e30, -2, -1, -0.5, 0, 0.5, 1, 1.001, 2, 1e30, np.inf, np.nan], np.float32)
for op, expected in (('Asinh', np.arcsinh(ends)), ('Acosh', np.arccosh(ends)), ('Sign', None), ('Celu', None)):
    case(op.lower() + '_ends', [h.make_node(op, ['x'], ['y'])], {'x': ends}, {}, {'y': T.FLOAT}, results=None if expected is None else [expected])
case('shrink_integers', [h.make_node('Shrink', ['x'], ['y'], lambd=1.5, bias=0.5)], {'x': np.arange(-5, 6, dtype=np.int32)}, {}, {'y': T.INT32})
counts = rng.integers(0, 9, (2, 3)).astype(np.uint32)
case('prelu_unsigned', [h.make_node('PRelu', ['x', 's'], ['y'])], {'x': counts}, {'s': np.array([5, 6, 7], np.uint32)}, {'y': T.UINT32}, results=[counts])
truths = rng.random((3, 4)) < 0.5
truths[1] = False
for op, expected in (('ReduceMax', truths.any(1)), ('ReduceMin', truths.all(1))):
    case('_'.join(['reduce', op[6:].lower(), 'truths']), [h.make_node(op, ['x', 'axes'], ['y'], keepdims=0)], {'x': truths}, {'axes': np.array([1])}, {'y': T.BOOL}, 20, [expected])
case('hardmax_several', [h.make_node('Hardmax', ['x'], ['y'], axis=1)], {'x': rng.integers(-3, 3, (3, 2, 4)).astype(np.float32)}, {}, {'y': T.FLOAT}, 11)
for reduction, combine in (('add', np.logical_or), ('mul', np.logical_and)):
    case('scatter_nd_truths_' + reduction, [h.make_node('ScatterND', ['x', 'i', 'u'], ['y'], reduction=reduction)], {'x': truths, 'i': np.array([[2], [0]]), 'u': truths[[0, 1]]}, {}, {'y': T.BOOL}, 16,
         [np.stack([combine(truths[0], truths[1]), truths[1], combine(truths[2], truths[0])])])
rows = fl(3, 4)
rows[1] = 0
case('lp_normalization_zeros', [h.make_node('LpNormalization', ['x'], ['y'])], {'x': rows}, {}, {'y': T.FLOAT})

# ai.onnx.ml: values replaced, picked and spread; support vectors; trees whose leaves stand in a list of their own, in f64 too.
TYPE['float64'] = T.DOUBLE
def learned(name, nodes, inputs, outputs, version=4, then=None):
    graph = h.make_graph(nodes, name, [h.make_tensor_value_info(k, TYPE[str(v.dtype)], v.shape) for k, v in inputs.items()], [h.make_tensor_value_info(k, t, None) for k, t in outputs.items()])
    model = h.make_model(graph, producer_name='isamap', opset_imports=[h.make_opsetid('', 15), h.make_opsetid('ai.onnx.ml', version)])
    model.ir_version = 8
    results = onnxruntime.InferenceSession(model.SerializeToString(), providers=['CPUExecutionProvider']).run(None, inputs)
    if then:
        nodes[0].attribute.append(h.make_attribute('post_transform', then[0]))
        graph.node[0].CopyFrom(nodes[0])
        model.graph.CopyFrom(graph)
        results = [then[1](r) for r in results]
    save(name, model, inputs, results)
def one(name, op, x, kind, **a): learned(name, [h.make_node(op, ['x'], ['y'], domain='ai.onnx.ml', **a)], {'x': x}, {'y': kind})
whole = np.array([[3, 7, -2], [5, 100, 3]], np.int64)
one('ml_labels_integers', 'LabelEncoder', whole, T.FLOAT, keys_int64s=[3, 7, 5, -2], values_floats=[0.5, -1.5, 2.25, 8.0], default_float=-3.0)
one('ml_labels_floats', 'LabelEncoder', np.array([0.5, np.nan, 3, 1], np.float32), T.INT64, keys_floats=[0.5, float('nan'), 1.0], values_int64s=[4, -9, 2**40], default_int64=77)
one('ml_labels_tensors', 'LabelEncoder', np.array([0.5, 4, 3], np.float64), T.DOUBLE, keys_tensor=tensor('k', np.array([3, 0.5])), values_tensor=tensor('v', np.array([1.25, 1e300])), default_tensor=tensor('d', np.array([-1.5])))
x = fl(3, 4)
x[0, 1] = x[2, 3] = np.nan
one('ml_imputer_nan', 'Imputer', x, T.FLOAT, imputed_value_floats=[1.0, 2.0, 3.0, 4.0], replaced_value_float=float('nan'))
one('ml_imputer_integers', 'Imputer', whole, T.INT64, imputed_value_int64s=[9], replaced_value_int64=3)
one('ml_one_hot', 'OneHotEncoder', whole, T.FLOAT, cats_int64s=[3, 5, 7], zeros=1)
def picked(name, x, i): learned(name, [h.make_node('ArrayFeatureExtractor', ['x', 'i'], ['y'], domain='ai.onnx.ml')], {'x': x, 'i': i}, {'y': T.FLOAT})
picked('ml_columns', fl(3, 5), np.array([[4, 0, 2]]))
picked('ml_columns_of_a_line', fl(5), np.array([1, 1]))
learned('ml_side_by_side', [h.make_node('FeatureVectorizer', ['a', 'b'], ['y'], domain='ai.onnx.ml', inputdimensions=[2, 4])], {'a': fl(3, 2), 'b': fl(3, 4)}, {'y': T.FLOAT})
for kernel in ('LINEAR', 'POLY', 'RBF', 'SIGMOID'):
    one('ml_svm_' + kernel.lower(), 'SVMRegressor', np.abs(fl(4, 3)), T.FLOAT, kernel_type=kernel, kernel_params=[0.25, 0.5, 3.0], n_supports=5, coefficients=numbers(5), support_vectors=[abs(v) for v in numbers(15)], rho=[0.75])
for kernel, labels, a in (('LINEAR', [4, -2, 9], {}), ('RBF', [0, 1], {}), ('RBF', [3, 5, 1, 0], dict(post_transform='SOFTMAX'))):
    n, d = len(labels), len(labels) * (len(labels) - 1) // 2
    learned('ml_svc_%d_%s' % (n, kernel.lower()), [h.make_node('SVMClassifier', ['x'], ['l', 'y'], domain='ai.onnx.ml', kernel_type=kernel, kernel_params=[0.25, 0.0, 3.0], classlabels_ints=labels, vectors_per_class=[2] * n, coefficients=numbers(2 * n * (n - 1)), support_vectors=numbers(6 * n), rho=numbers(d), **a)], {'x': fl(9, 3)}, both, 3)
one('ml_svm_plain', 'SVMRegressor', fl(4, 3), T.FLOAT, kernel_type='LINEAR', kernel_params=[0.0, 0.0, 0.0], coefficients=numbers(3), rho=[0.75])
def forest(depths, features, targets, kind):
    n = {k: [] for k in ('featureids', 'splits', 'truenodeids', 'falsenodeids', 'trueleafs', 'falseleafs', 'missing_value_tracks_true')}
    target, weight, roots = [], [], []
    def node(depth):
        me = len(n['splits'])
        for k, v in zip(n, (int(rng.integers(features)), float(fl(1)[0]), 0, 0, 0, 0, int(rng.random() < 0.5))): n[k].append(v)
        for side in ('true', 'false'):
            leaf = depth == 1 or rng.random() < 0.2
            if leaf:
                n[side + 'nodeids'][me] = len(target)
                target.append(int(rng.integers(targets)))
                weight.append(float(rng.standard_normal()))
            else: n[side + 'nodeids'][me] = node(depth - 1)
            n[side + 'leafs'][me] = int(leaf)
        return me
    for depth in depths: roots.append(node(depth))
    splits = n.pop('splits')
    return dict({'nodes_' + k: v for k, v in n.items()}, nodes_splits=tensor('', np.array(splits, kind)), nodes_modes=tensor('', np.zeros(len(splits), np.uint8)), leaf_targetids=target, leaf_weights=tensor('', np.array(weight, kind)), tree_roots=roots, n_targets=targets)
x = fl(9, 4)
x[2, 1] = x[5, 3] = np.nan
# What ONNX Runtime 1.23 makes of post_transform is not what the specification says.
softmax, logistic = (1, lambda s: np.exp(s) / np.exp(s).sum(1, keepdims=True)), (2, lambda s: 1 / (1 + np.exp(-s)))
for name, kind, targets, how, then in (('sum', np.float64, 3, 1, softmax), ('average', np.float32, 1, 0, logistic), ('most', np.float32, 1, 3, None)):
    learned('ml_forest_' + name, [h.make_node('TreeEnsemble', ['x'], ['y'], domain='ai.onnx.ml', aggregate_function=how, **forest([4, 2, 1], 4, targets, kind))], {'x': x.astype(kind)}, {'y': TYPE[np.dtype(kind).name]}, 5, then)
learned('ml_trees_hits', [h.make_node('TreeEnsembleRegressor', ['x'], ['y'], domain='ai.onnx.ml', n_targets=1, nodes_hitrates=[1.0] * 3, nodes_treeids=[0] * 3, nodes_nodeids=[0, 1, 2], nodes_featureids=[1, 0, 0], nodes_modes=['BRANCH_LEQ', 'LEAF', 'LEAF'], nodes_values=[0.25, 0.0, 0.0], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], target_treeids=[0, 0], target_nodeids=[1, 2], target_ids=[0, 0], target_weights=[1.5, -2.0])], {'x': x}, score, 3)

# Boxes that are data: a row for each that may be chosen; those behind the last one name no element.
suppressed = np.random.default_rng(15)
for name, B, C, N, most, overlap, least, centre in (('non_max_suppression_classes', 2, 3, 17, 4, 0.1, 0.6, 0), ('non_max_suppression_centre', 1, 2, 20, 20, 0.2, None, 1), ('non_max_suppression_none', 2, 1, 5, 3, 0.5, 2.0, 0)):
    boxes, scores = suppressed.random((B, N, 4)).astype(np.float32), suppressed.integers(0, 40, (B, C, N)).astype(np.float32) / 40
    boxes[..., 2:] *= 0.4 if centre else 1
    constants = dict(known(k=[most]), i=np.array([overlap], np.float32), **({} if least is None else {'t': np.array([least], np.float32)}))
    node = h.make_node('NonMaxSuppression', ['x', 's', 'k', 'i'] + ([] if least is None else ['t']), ['y'], center_point_box=centre)
    model = h.make_model(h.make_graph([node], name, [h.make_tensor_value_info(k, T.FLOAT, v.shape) for k, v in (('x', boxes), ('s', scores))], [h.make_tensor_value_info('y', T.INT64, ['n', 3])], [tensor(k, v) for k, v in constants.items()]), opset_imports=[h.make_opsetid('', 11)], ir_version=8)
    rows = onnxruntime.InferenceSession(model.SerializeToString(), providers=['CPUExecutionProvider']).run(None, {'x': boxes, 's': scores})[0]
    save(name, model, {'x': boxes, 's': scores}, [np.concatenate([rows, np.full((B * C * most - len(rows), 3), 2**31 - 1)])])

# NaN passes through what chooses the larger or smaller; whole vectors and rests of them, numbers, f16 and f64.
nans = np.random.default_rng(16)
def some(n):
    a = nans.standard_normal((3, 23)).astype(np.float32) * 3
    a.flat[n % 69], a.flat[n * 7 % 69], a.flat[68 - n], a.flat[0] = np.nan, np.inf, -np.inf, np.nan if n % 2 else 0
    return a
x, z, w = some(1), some(2), some(3)
for name, op, inputs, constants, opset, options in (
        ('relu', 'Relu', {'x': x}, {}, 13, {}), ('clip', 'Clip', {'x': x}, {'l': f(-1), 'h': f(2)}, 13, {}), ('clip_attributes', 'Clip', {'x': x}, {}, 10, {'min': -1.5, 'max': 6.0}),
        ('clip_given', 'Clip', {'x': x, 'l': np.array(-1, np.float32), 'h': np.array(2, np.float32)}, {}, 13, {}), ('clip_crossed', 'Clip', {'x': x, 'l': np.array(2, np.float32), 'h': np.array(1, np.float32)}, {}, 13, {}),
        ('hard_sigmoid', 'HardSigmoid', {'x': x}, {}, 13, {'alpha': 0.3, 'beta': 0.4}),
        ('max', 'Max', {'x': x, 'z': z}, {}, 13, {}), ('min', 'Min', {'x': x, 'z': z}, {}, 13, {}), ('max_three', 'Max', {'x': x, 'z': z, 'w': w}, {}, 13, {}), ('min_three', 'Min', {'x': x, 'z': z, 'w': w}, {}, 13, {}),
        ('max_number', 'Max', {'x': x}, {'l': f(-1.5)}, 13, {}), ('min_number', 'Min', {'x': x}, {'h': f(1.5)}, 13, {})):
    case('nan_' + name, [h.make_node(op, [*inputs, *constants], ['y'], **options)], inputs, constants, {'y': T.FLOAT}, opset)
case('nan_number_max', [h.make_node('Max', ['l', 'x'], ['y'])], {'x': x}, {'l': f(-1.5)}, {'y': T.FLOAT})

# Leaves that each belong to one class, as boosting makes them; trees of which few are high.
x = fl(9, 5)
x[1, 2] = x[7, 0] = np.nan
ml('ml_trees_one_class_each', 'TreeEnsembleClassifier', x, both, classlabels_int64s=[4, 2, 9, 5], post_transform='SOFTMAX', **trees([2, 7, 3, 2, 5, 1, 2, 0], 5, 4, 'class', any_one=True))

# Nothing but zeros has steps of one.
case('dynamic_quantize_zeros', [h.make_node('DynamicQuantizeLinear', ['x'], ['y', 's', 'z'])], {'x': np.zeros((2, 3), np.float32)}, {}, {'y': T.UINT8, 's': T.FLOAT, 'z': T.UINT8})

def ranked(n):
    x = rng.integers(-20, 20, (3, n)).astype(np.float32)
    x[1, rng.integers(0, n, 9)] = np.nan
    x[2, 3] = np.inf
    x[2, 5] = -np.inf
    x[2, 7] = np.nan
    return x

# Many of a long axis are ranked: ties, NaNs, the middle of a tensor, integers, one element.
for name, x, k, axis, largest in (('top_k_all', ranked(300), 300, 1, 1), ('top_k_all_least', ranked(300), 300, 1, 0), ('top_k_many', ranked(260), 40, 1, 1), ('top_k_many_least', ranked(260), 40, 1, 0), ('top_k_few_nan', ranked(30)[:, :30], 30, 1, 0),
                                  ('top_k_many_middle', i8(2, 280, 3), 280, 1, 1), ('top_k_many_integers', rng.integers(-5, 5, (270, 2)), 270, 0, 0), ('top_k_one', fl(3, 1), 1, 1, 1)):
    case(name, [h.make_node('TopK', ['x', 'k'], ['v', 'i'], axis=axis, largest=largest)], {'x': x}, {'k': np.array([k])}, {'v': TYPE[str(x.dtype)], 'i': T.INT64}, results=top(x, k, axis, largest))

# Rows of nothing but NaNs, and rows with some behind the first element.
x = fl(3, 5)
x[0], x[2, 3] = np.nan, np.nan
for op in ('ArgMax', 'ArgMin'):
    case(op.lower() + '_nan', [h.make_node(op, ['x'], ['y'], axis=1)], {'x': x}, {}, {'y': T.INT64})

# Windows that are shorter than their strides: SAME leaves elements out before the first.
for op in ('MaxPool', 'AveragePool'):
    for mode in ('UPPER', 'LOWER'):
        case('%s_short_%s' % (op.lower(), mode.lower()), [h.make_node(op, ['x'], ['y'], kernel_shape=[1, 2], strides=[4, 5], auto_pad='SAME_' + mode)], {'x': fl(1, 2, 7, 9)}, {}, {'y': T.FLOAT})

# 5 times 2.6 are 13 in f32, in which ONNX infers shapes.
case('resize_scale_in_f32', [h.make_node('Resize', ['x', '', 's'], ['y'], mode='nearest')], {'x': fl(1, 1, 5, 5)}, {'s': np.float32([1, 1, 2.6, 1.4])}, {'y': T.FLOAT})
# Scales whose product is a half in f32 and close to one in f64: half of the sums lie between two integers
rng = np.random.default_rng(81)
def halves_of(n):
    while True:
        x, w, y = (np.float32(v) for v in rng.uniform(0.001, 0.1, 3))
        w = np.float32(0.5 * y / x)
        exact = float(x) * float(w) / float(y)
        if np.float32(np.float32(x * w) / y) == 0.5 and exact != 0.5: return x, w, y
xs, w0, ys = halves_of(0)
a, b = i8(4, 5), rng.integers(-2, 3, (5, 3)).astype(np.int8)
quantised = {'xs': xs, 'xz': np.int8(3), 'w': b, 'ws': w0, 'wz': np.int8(0), 'ys': ys, 'yz': np.int8(-7)}
case('qlinear_matmul_halves', [h.make_node('QLinearMatMul', ['x', 'xs', 'xz', 'w', 'ws', 'wz', 'ys', 'yz'], ['y'])], {'x': a}, quantised, {'y': T.INT8})
quantised.update(ws=np.array([w0, w0 * 0.5, w0 * 3], np.float32), wz=np.zeros(3, np.int8), w=rng.integers(-2, 3, (3, 5, 1, 1)).astype(np.int8))
case('qlinear_conv_halves', [h.make_node('QLinearConv', ['x', 'xs', 'xz', 'w', 'ws', 'wz', 'ys', 'yz'], ['y'])], {'x': i8(1, 5, 3, 4)}, quantised, {'y': T.INT8})
quantised.update(w=b, ws=w0, wz=np.int8(0), c=rng.integers(-9, 9, 3).astype(np.int32))
for name, ins in (('qgemm_alpha', ['c', 'ys', 'yz']), ('qgemm_alpha_float', ['c'])):
    case(name, [ms('QGemm', ['x', 'xs', 'xz', 'w', 'ws', 'wz', *ins], alpha=0.75)], {'x': a}, {k: quantised[k] for k in ('xs', 'xz', 'w', 'ws', 'wz', *ins)}, {'y': T.INT8 if 'yz' in ins else T.FLOAT})
own = np.random.default_rng(11)
for name, opset, n in (('group_normalization', 21, 6), ('group_normalization_by_group', 18, 3)):
    x, s, b = (own.standard_normal(shape).astype(np.float32) for shape in ((2, 6, 3, 4), (n,), (n,)))
    case(name, [h.make_node('GroupNormalization', ['x', 's', 'b'], ['y'], num_groups=3, epsilon=1e-3)], {'x': x}, {'s': s, 'b': b}, {'y': T.FLOAT}, opset)
# Small deviations: epsilon is added to the root, as the specification's function does it. ONNX Runtime adds none. Older exporters write a value to pad with in every mode.
x = (own.standard_normal((2, 3, 4, 5)) * np.reshape([1e-2, 1e-5, 1e-7], (1, 3, 1, 1))).astype(np.float32)
wide = x.astype(np.float64)
apart = wide - wide.mean((0, 2, 3), keepdims=True)
case('mean_variance_small', [h.make_node('MeanVarianceNormalization', ['x'], ['y'])], {'x': x}, {}, {'y': T.FLOAT}, results=[(apart / (np.sqrt((apart ** 2).mean((0, 2, 3), keepdims=True)) + 1e-9)).astype(np.float32)])
case('pad_reflect_value', [h.make_node('Pad', ['x'], ['y'], mode='reflect', pads=[0, 1, 2, 0], value=0.5)], {'x': own.standard_normal((3, 4)).astype(np.float32)}, {}, {'y': T.FLOAT}, 7)
# ONNX Runtime's optimisers write the specification's preset: two functions, whatever the direction.
case('rnn_two_functions', [h.make_node('RNN', ['x', 'w', 'r'], ['y'], hidden_size=3, direction='reverse', activations=['Tanh', 'Tanh'])], {'x': own.standard_normal((4, 2, 5)).astype(np.float32)},
     {'w': own.standard_normal((1, 3, 5)).astype(np.float32), 'r': own.standard_normal((1, 3, 3)).astype(np.float32)}, {'y': T.FLOAT}, 14)
# What NonZero and Compress find in data: as many places as there may be; those behind the last one name no element, and are 0 where gathered.
own = np.random.default_rng(23)
for name, x in (('non_zero', own.integers(-1, 2, (3, 1, 5)).astype(np.float32)), ('non_zero_line', own.random(300) < 0.2), ('non_zero_none', np.zeros((2, 2), np.int32))):
    found = np.array(np.nonzero(x))
    case(name, [h.make_node('NonZero', ['x'], ['y'])], {'x': x}, {}, {'y': T.INT64}, results=[np.concatenate([found, np.full((x.ndim, x.size - found.shape[1]), 2**31 - 1)], 1)])
x, keep = own.standard_normal((2, 6, 3)).astype(np.float32), np.array([1, 0, 0, 1, 1], bool)
case('compress_data', [h.make_node('Compress', ['x', 'k'], ['y'], axis=1)], {'x': x, 'k': keep}, {}, {'y': T.FLOAT}, results=[np.concatenate([x[:, [0, 3, 4]], np.zeros((2, 2, 3), np.float32)], 1)])
case('experts', [h.make_node('Equal', ['i', 'e'], ['m']), h.make_node('NonZero', ['m'], ['n']), h.make_node('Split', ['n'], ['t', 'k'], axis=0), h.make_node('Squeeze', ['t', 'z'], ['r']),  # rows of one expert, computed apart and added
                 h.make_node('Gather', ['x', 'r'], ['g']), h.make_node('MatMul', ['g', 'w'], ['h']), h.make_node('Transpose', ['n'], ['at']), h.make_node('GatherND', ['p', 'at'], ['q']),
                 h.make_node('Unsqueeze', ['q', 'o'], ['u']), h.make_node('Mul', ['h', 'u'], ['v']), h.make_node('Transpose', ['t'], ['to']), h.make_node('ScatterND', ['x', 'to', 'v'], ['y'], reduction='add')],
     {'x': own.standard_normal((6, 4)).astype(np.float32), 'i': np.array([[2, 0], [0, 1], [1, 0], [2, 1], [1, 2], [0, 1]]), 'p': own.random((6, 2)).astype(np.float32)},
     {'e': np.int64(1), 'z': np.array([0]), 'o': np.array([1]), 'w': own.standard_normal((4, 4)).astype(np.float32)}, {'y': T.FLOAT}, 16)
# Sequences, and a loop that one goes through, as EmbeddingBag is exported
x = own.standard_normal((7, 3)).astype(np.float32)
case('sequence_parts', [h.make_node('SplitToSequence', ['x', 's'], ['a'], axis=0), h.make_node('SequenceInsert', ['a', 'x', 'm'], ['b']), h.make_node('SequenceErase', ['b', 'z'], ['c']), h.make_node('SequenceAt', ['c', 'm'], ['d']),
                        h.make_node('ConcatFromSequence', ['c'], ['y'], axis=0), h.make_node('Neg', ['d'], ['v']), h.make_node('SequenceLength', ['c'], ['n'])],
     {'x': x}, {'s': np.array([2, 4, 1]), 'm': np.int64(-1), 'z': np.int64(0)}, {'y': T.FLOAT, 'v': T.FLOAT, 'n': T.INT64})
case('sequence_single', [h.make_node('SplitToSequence', ['x'], ['a'], axis=1, keepdims=0), h.make_node('ConcatFromSequence', ['a'], ['y'], axis=0, new_axis=1), h.make_node('SplitToSequence', ['x', 't'], ['b'], axis=0),
                         h.make_node('SequenceAt', ['b', 'm'], ['c']), h.make_node('SequenceConstruct', ['c', 'x'], ['d']), h.make_node('ConcatFromSequence', ['d'], ['z'], axis=-2)], {'x': x}, {'t': np.int64(3), 'm': np.int64(2)}, {'y': T.FLOAT, 'z': T.FLOAT})
value = h.make_tensor_value_info
body = h.make_graph([h.make_node('Unsqueeze', ['i', 'o'], ['at']), h.make_node('Add', ['at', 'one'], ['next']), h.make_node('Add', ['at', 'two'], ['behind']), h.make_node('Slice', ['f', 'at', 'next'], ['from']),
                     h.make_node('Slice', ['f', 'next', 'behind'], ['to']), h.make_node('Slice', ['x', 'from', 'to'], ['rows']), h.make_node('ReduceSum', ['rows', 'o'], ['sum']), h.make_node('SequenceInsert', ['l', 'sum'], ['m']), h.make_node('Identity', ['go'], ['on'])], 'body',
                    [value('i', T.INT64, []), value('go', T.BOOL, []), h.make_tensor_sequence_value_info('l', T.FLOAT, None)], [value('on', T.BOOL, []), h.make_tensor_sequence_value_info('m', T.FLOAT, None)])
case('sequence_bags', [h.make_node('SequenceEmpty', [], ['none']), h.make_node('Loop', ['n', '', 'none'], ['l'], body=body), h.make_node('ConcatFromSequence', ['l'], ['y'], axis=0)], {'x': x},
     {'f': np.array([0, 2, 5, 7]), 'n': np.int64(3), 'o': np.array([0]), 'one': np.array([1]), 'two': np.array([2])}, {'y': T.FLOAT})
# The standardisation of weights, as exporters write it
case('batch_normalization_of_weights', [h.make_node('Reshape', ['w', 's'], ['r']), h.make_node('BatchNormalization', ['r', 'g', 'b', 'u', 'd'], ['n', 'm', 'v'], training_mode=1), h.make_node('Reshape', ['n', 't'], ['k']), h.make_node('Conv', ['x', 'k'], ['y'])],
     {'x': own.standard_normal((1, 3, 5, 5)).astype(np.float32)}, {'w': own.standard_normal((4, 3, 2, 2)).astype(np.float32), 's': np.array([1, 4, -1]), 't': np.array([4, 3, 2, 2]), 'g': np.linspace(0.5, 2, 4).astype(np.float32), 'b': np.linspace(-1, 1, 4).astype(np.float32), 'u': np.zeros(4, np.float32), 'd': np.ones(4, np.float32)}, {'y': T.FLOAT}, 15)
x = own.standard_normal((2, 3, 4, 5)).astype(np.float32)
g, b, m, v = (own.random(3).astype(np.float32) for _ in range(4))
wide = x.astype(np.float64)
mean, var = wide.mean((0, 2, 3)), wide.var((0, 2, 3))
y = (wide - mean.reshape(3, 1, 1)) / np.sqrt(var.reshape(3, 1, 1) + 1e-3) * g.reshape(3, 1, 1) + b.reshape(3, 1, 1)
case('batch_normalization_training', [h.make_node('BatchNormalization', ['x', 'g', 'b', 'm', 'v'], ['y', 'p', 'q'], training_mode=1, epsilon=1e-3, momentum=0.8)], {'x': x, 'm': m, 'v': v}, {'g': g, 'b': b},
     {'y': T.FLOAT, 'p': T.FLOAT, 'q': T.FLOAT}, 15, results=[a.astype(np.float32) for a in (y, m * 0.8 + mean * 0.2, v * 0.8 + var * 0.2)])
# Windows whose ends lie outside the input wherever they stand: wide dilations on small maps, one row of taps, steps that pass over the input
for name, shape, w, options in (('all', (1, 2, 5, 4), (3, 2, 3, 3), dict(dilations=[6, 5], pads=[6, 5, 6, 5])), ('side', (1, 2, 5, 4), (3, 2, 3, 3), dict(dilations=[3, 3], pads=[7, 0, 0, 7])),
                                ('steps', (1, 4, 3, 9), (4, 2, 5, 5), dict(dilations=[2, 4], pads=[4, 8, 4, 8], strides=[3, 2], group=2))):
    case('conv_wide_' + name, [h.make_node('Conv', ['x', 'w', 'b'], ['y'], **options)], {'x': own.standard_normal(shape).astype(np.float32)}, {'w': own.standard_normal(w).astype(np.float32), 'b': own.standard_normal(w[0]).astype(np.float32)}, {'y': T.FLOAT})
# Known places that go on evenly, as where slices and windows are written by index: forwards, backwards, from the end, in grids
own = np.random.default_rng(31)
even = lambda *s: own.standard_normal(s).astype(np.float32)
grid = np.stack(np.meshgrid([5, 3, 1], [0, 2, 4, 6], indexing='ij'), -1)
for name, at, options in (('line', np.arange(-6, 0).reshape(6, 1), {}), ('grid', grid, {}), ('whole', np.arange(7)[::-1].reshape(7, 1), {}), ('one', np.array([[-2, 4]]), {}),
                          ('add', np.array([[2], [4], [6]]), dict(reduction='add')), ('max', grid[:, 1:3], dict(reduction='max'))):
    case('scatter_even_' + name, [h.make_node('ScatterND', ['x', 'i', 'u'], ['y'], **options)], {'x': even(7, 8, 3), 'u': even(*at.shape[:-1], *(7, 8, 3)[at.shape[-1]:])}, {'i': at}, {'y': T.FLOAT}, 18)
case('gather_even_windows', [h.make_node('Gather', ['x', 'i'], ['y'], axis=1)], {'x': even(2, 9, 3)}, {'i': np.add.outer(2 * np.arange(4), np.arange(3))}, {'y': T.FLOAT})
case('gather_even_grid', [h.make_node('GatherND', ['x', 'i'], ['y'])], {'x': even(7, 8, 3)}, {'i': grid}, {'y': T.FLOAT})
case('gather_even_batch', [h.make_node('GatherND', ['x', 'i'], ['y'], batch_dims=1)], {'x': even(2, 8, 3)}, {'i': np.array([[[1], [3], [5]], [[2], [4], [6]]])}, {'y': T.FLOAT})
# Loops that end when a value is reached, or after so many iterations: by And, by Not and Or, by a branch (as `while` is exported), beside the largest trip count there is
def counted(name, ends, most=()):
    steps = h.make_graph([h.make_node('Add', ['m', 'one'], ['n']), h.make_node('Mul', ['s', 'half'], ['v']), h.make_node('ReduceMax', ['v'], ['w'], keepdims=0)] + ends, 'body', [value('i', T.INT64, []), value('go', T.BOOL, []), value('m', T.INT64, []), value('s', T.FLOAT, None)],
                         [value('on', T.BOOL, []), value('n', T.INT64, []), value('v', T.FLOAT, None)])
    case('loop_until_' + name, [h.make_node('Loop', [*most, 'yes', 'zero', 'x'] if most else ['', 'yes', 'zero', 'x'], ['k', 'y'], body=steps)], {'x': np.array([1, 0.5, -2], np.float32)},
         {'one': np.int64(1), 'zero': np.int64(0), 'half': np.float32(1.5), 'top': np.float32(20), 'last': np.int64(5 if name == 'counted' else 12), 'yes': np.bool_(True), 'all': np.int64(2**63 - 1)}, {'k': T.INT64, 'y': T.FLOAT}, 17)
less = [h.make_node('Less', ['w', 'top'], ['a']), h.make_node('Less', ['n', 'last'], ['b'])]
counted('and', less + [h.make_node('And', ['b', 'a'], ['on'])])
counted('counted', less + [h.make_node('And', ['b', 'a'], ['on'])], ['all'])
counted('not', [h.make_node('GreaterOrEqual', ['w', 'top'], ['a']), h.make_node('GreaterOrEqual', ['n', 'last'], ['b']), h.make_node('Or', ['a', 'b'], ['c']), h.make_node('Not', ['c'], ['on'])])
counted('branch', less[:1] + [h.make_node('If', ['a'], ['on'], then_branch=h.make_graph([h.make_node('Less', ['n', 'last'], ['b'])], 'then', [], [value('b', T.BOOL, [])]),
                                          else_branch=h.make_graph([h.make_node('Identity', ['a'], ['c'])], 'else', [], [value('c', T.BOOL, [])]))])
x = np.linspace(-1, 1, 6).reshape(2, 3).astype(np.float32)
maybe = h.make_tensor_type_proto(T.FLOAT, [2, 3])
case('optional_some', [h.make_node('Optional', ['x'], ['o']), h.make_node('OptionalHasElement', ['o'], ['b']), h.make_node('OptionalGetElement', ['o'], ['y'])], {'x': x}, {}, {'y': T.FLOAT, 'b': T.BOOL}, 18)
case('optional_none', [h.make_node('Optional', [], ['o'], type=maybe), h.make_node('OptionalHasElement', ['o'], ['b']), h.make_node('If', ['b'], ['y'], then_branch=h.make_graph([h.make_node('OptionalGetElement', ['o'], ['p'])], 'then', [], [value('p', T.FLOAT, [2, 3])]),
     else_branch=h.make_graph([h.make_node('Neg', ['x'], ['q'])], 'else', [], [value('q', T.FLOAT, [2, 3])]))], {'x': x}, {}, {'y': T.FLOAT, 'b': T.BOOL}, 18)
case('optional_tensor', [h.make_node('OptionalHasElement', ['x'], ['b']), h.make_node('OptionalGetElement', ['x'], ['y'])], {'x': x}, {}, {'y': T.FLOAT, 'b': T.BOOL}, 18)
# A score that takes weight and gives no value; rows that attend to later ones; caches as long as a window, from which the first places go
rng = np.random.default_rng(37)
gqa('group_query_attention_sink', 1, 3, 4, 4, ('s',), rotary=1)
gqa('group_query_attention_sink_window', 1, 5, 0, 0, ('s',), local_window_size=3)
gqa('group_query_attention_smooth', 1, 3, 2, 2, smooth_softmax=1)
gqa('group_query_attention_everywhere', 1, 5, 0, 0, causal=0)
gqa('group_query_attention_rolled', 1, 3, 4, 4, rotary=1, local_window_size=4, sliding_window_cache=1)
gqa('group_query_attention_rolled_step', 1, 1, 11, 6, local_window_size=4, sliding_window_cache=1, softcap=2.0)
gqa('group_query_attention_rolled_long', 1, 7, 2, 4, local_window_size=4, sliding_window_cache=1)
# No operator of ONNX's own domain, which the model does not import, as XGBoost's are exported
case('ml_domain_alone', [h.make_node('Scaler', ['x'], ['y'], domain='ai.onnx.ml', offset=[1.0, 2.0], scale=[0.5, 3.0])], {'x': rng.standard_normal((3, 2)).astype(np.float32)}, {}, {'y': T.FLOAT}, domains=['ai.onnx.ml'])
# Inputs of no elements, as the past of a decoder's first call
rng = np.random.default_rng(41)
none = {'pk': np.zeros((1, 2, 0, 8), np.float32), 'pv': np.zeros((1, 2, 0, 8), np.float32)}
three = {'q': fl(1, 3, 16), 'k': fl(1, 3, 16), 'v': fl(1, 3, 16)}
keys = {'y': T.FLOAT, 'k2': T.FLOAT, 'v2': T.FLOAT}
case('empty_past_joined', [h.make_node('Concat', ['pk', 'x'], ['y'], axis=2), h.make_node('Shape', ['pk'], ['n'])], {'pk': none['pk'], 'x': fl(1, 2, 3, 8)}, {}, {'y': T.FLOAT, 'n': T.INT64})
case('empty_past_multi_head', [ms('MultiHeadAttention', ['q', 'k', 'v', '', '', '', 'pk', 'pv'], ['y', 'k2', 'v2'], num_heads=2)], dict(three, **none), {}, keys)
case('empty_past_grouped', [ms('GroupQueryAttention', ['q', 'k', 'v', 'pk', 'pv', 'l', 'n', '', ''], ['y', 'k2', 'v2'], num_heads=2, kv_num_heads=2)], dict(three, **none), {'l': i32(2), 'n': i32(3)}, keys)
case('empty_past_attention', [ms('Attention', ['x', 'w', 'b', '', 'p'], ['y', 'p2'], num_heads=2, unidirectional=1)], {'x': fl(1, 3, 12), 'p': np.zeros((2, 1, 2, 0, 8), np.float32)}, {'w': fl(12, 48), 'b': fl(48)}, {'y': T.FLOAT, 'p2': T.FLOAT})
case('empty_past_scaled', [h.make_node('Attention', ['q', 'k', 'v', '', 'pk', 'pv'], ['y', 'k2', 'v2'], q_num_heads=2, kv_num_heads=2, is_causal=1)], dict(three, **none), {}, keys, 23)
# A slice moves with a state that counts, by steps of its own, as loops over rows are exported by way of TensorFlow; another state stays as it was
rng = np.random.default_rng(43)
moves = h.make_graph([h.make_node('Slice', ['rows', 'c'] + ['d', 'zero1'], ['r']), h.make_node('Add', ['c', 'two'], ['c2']), h.make_node('Add', ['d', 'two'], ['d2']), h.make_node('Add', ['s', 'r'], ['s2']), h.make_node('Identity', ['go'], ['on']), h.make_node('Squeeze', ['r', 'zero1'], ['row'])], 'body',
                     [value('i', T.INT64, []), value('go', T.BOOL, []), value('c', T.INT64, [1]), value('d', T.INT64, [1]), value('rows', T.FLOAT, [6, 4]), value('s', T.FLOAT, [1, 4])],
                     [value('on', T.BOOL, []), value('c2', T.INT64, [1]), value('d2', T.INT64, [1]), value('rows', T.FLOAT, [6, 4]), value('s2', T.FLOAT, [1, 4]), value('row', T.FLOAT, [4])])
case('loop_counter_moves', [h.make_node('Loop', ['three', 'yes', 'zero1', 'one1', 'x', 's0'], ['ce', 'de', 'xe', 'y', 'all'], body=moves)], {'x': fl(6, 4), 's0': fl(1, 4)},
     {'three': np.int64(3), 'yes': np.bool_(True), 'zero1': np.array([0]), 'one1': np.array([1]), 'two': np.array([2])}, {'y': T.FLOAT, 'all': T.FLOAT, 'ce': T.INT64}, 17)
# Mixtures of experts: fewer choices than experts, then more; gates side by side, with and without limits; no biases
rng = np.random.default_rng(47)
def experts(name, tokens, count, k, bias=True, lines=False, **a):
    wide = 2 if a.get('swiglu_fusion') else 1
    c = {'w': fl(count, wide * 6, 8) / 3, 'v': fl(count, 8, 6) / 3}
    if bias: c.update(b=fl(count, wide * 6), d=fl(count, 8))
    case('moe_' + name, [ms('MoE', ['x', 'r', 'w', 'b' if bias else '', 'v', 'd' if bias else ''], k=k, **a)], {'x': fl(tokens, 8) if lines else fl(1, tokens, 8), 'r': fl(tokens, count)}, c, {'y': T.FLOAT})
experts('chosen', 1, 6, 2, normalize_routing_weights=1)
experts('all', 4, 5, 2)
experts('lines', 3, 4, 1, lines=True, bias=False, activation_type='gelu')
experts('silu', 3, 4, 3, activation_type='silu')
experts('gated', 1, 4, 2, activation_type='swiglu', swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0)
experts('gated_limited', 3, 4, 2, activation_type='swiglu', swiglu_fusion=1, swiglu_limit=0.3, normalize_routing_weights=1)

# Weights alone in few bits, as exporters write them
def steps_of(*s): return (rng.random(s) * 0.1 + 0.01).astype(np.float32)
def dequantised(inputs, **a): return h.make_node('DequantizeLinear', inputs, ['f'], **a)
product, exchanged = h.make_node('MatMul', ['x', 'f'], ['y']), [h.make_node('Transpose', ['f'], ['t'], perm=[1, 0]), h.make_node('MatMul', ['x', 't'], ['y'])]
blocks('weights_i8_zeros', [], {'w': i8(64, 40), 's': steps_of(40), 'z': i8(40)}, {'y': T.FLOAT}, [dequantised(['w', 's', 'z'], axis=1), product])
blocks('weights_u8_one', [], {'w': u8(64, 40), 's': f(0.02), 'z': np.uint8(117)}, {'y': T.FLOAT}, [dequantised(['w', 's', 'z']), product])
blocks('weights_i4_columns', [halves('w', T.INT4, rng.integers(-8, 8, (64, 40)))], {'s': steps_of(40)}, {'y': T.FLOAT}, [dequantised(['w', 's'], axis=1), product])
blocks('weights_u4_gemm', [halves('w', T.UINT4, rng.integers(0, 16, (40, 64))), halves('z', T.UINT4, rng.integers(0, 16, (40, 4)))], {'s': steps_of(40, 4), 'b': fl(40)}, {'y': T.FLOAT},
       [dequantised(['w', 's', 'z'], axis=1, block_size=16), h.make_node('Gemm', ['x', 'f', 'b'], ['y'], transB=1)])
blocks('weights_u4_exchanged', [halves('w', T.UINT4, rng.integers(0, 16, (40, 64)))], {'s': steps_of(40)}, {'y': T.FLOAT}, [dequantised(['w', 's'], axis=0)] + exchanged)
rows = h.make_node('Gather', ['f', 'x'], ['y'])
for name, constants, a in (('rows', {'s': steps_of(30), 'z': u8(30)}, dict(axis=0)), ('columns', {'s': steps_of(12)}, dict(axis=-1)), ('one', {'s': f(0.1), 'z': np.uint8(9)}, {})):
    blocks('table_u8_' + name, [], dict(constants, w=u8(30, 12)), {'y': T.FLOAT}, [dequantised(['w', 's'] + (['z'] if 'z' in constants else []), **a), rows], rng.integers(0, 30, (2, 5)))
blocks('table_i4_blocks', [halves('w', T.INT4, rng.integers(-8, 8, (30, 12))), halves('z', T.INT4, rng.integers(-8, 8, (30, 3)))], {'s': steps_of(30, 3)}, {'y': T.FLOAT},
       [dequantised(['w', 's', 'z'], axis=1, block_size=4), rows], rng.integers(0, 30, 5))
for bits, size, zero in ((4, 16, None), (4, 32, 'u8'), (8, 32, 'u8')): # inputs of 8 bits
    rows, depth, count = 11, 72, -(-72 // size)
    c = {'b': u8(rows, count, size * bits // 8), 's': (rng.random(rows * count) * 0.1).astype(np.float32)}
    if zero: c['z'] = u8(rows * -(-count * bits // 8))
    c['bias'] = fl(rows)
    x = fl(2, 3, depth)
    x[1, :, :size] = 0
    case('matmul_nbits_%d_%d%s_level4' % (bits, size, '_' + zero if zero else ''), [ms('MatMulNBits', ['x', 'b', 's', 'z' if zero else '', '', 'bias'], K=depth, N=rows, bits=bits, block_size=size, accuracy_level=4)],
         {'x': x}, c, {'y': T.FLOAT})

# Back from half of the bins, by numpy: ONNX Runtime has other values where a length is given
def half_back(name, shape, axis, length, opset):
    x = fl(*shape)
    node = h.make_node('DFT', ['x', 'n' if length else ''] + (['a'] if opset >= 20 else []), ['y'], onesided=1, inverse=1, **({} if opset >= 20 else {'axis': axis}))
    y = np.fft.irfft(x[..., 0] + 1j * x[..., 1], n=length, axis=axis).astype(np.float32)[..., None]
    case('dft_half_back_' + name, [node], {'x': x}, dict(known(n=length) if length else {}, **(known(a=axis) if opset >= 20 else {})), {'y': T.FLOAT}, opset, [y])
half_back('even', (3, 8, 2, 2), 1, None, 17)
half_back('odd', (2, 9, 2), 1, 15, 20)
half_back('fewer', (2, 9, 2), 1, 12, 20)
half_back('more', (2, 5, 2), 1, 12, 20)

# Experts of few bits
def coded(name, tokens, count, k, bits, block=0, zero=False, own=False, how='silu', norm=1):
    wide, inner, width = 2 if how == 'swiglu' else 1, 32, 16
    c, x = {}, {'x': fl(tokens, width), 'r': fl(tokens, count)}
    for p, rows, depth in (('1', wide * inner, width), ('2', width, inner)):
        many = depth // block if block else rows
        c['w' + p] = u8(count, rows, depth * bits // 8)
        c['s' + p] = steps_of(*((count, rows, many) if block else (count, rows))) / 2 ** (bits - 4)
        c['b' + p] = fl(count, rows)
        if zero: c['z' + p] = u8(*((count, rows) if block else (count,)), -(-many * bits // 8))
    if own: x['o'] = rng.random((tokens, count)).astype(np.float32)
    a = dict(swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0) if how == 'swiglu' else {}
    if block: a['block_size'] = block
    case('qmoe_' + name, [ms('QMoE', ['x', 'r', 'w1', 's1', 'b1', 'w2', 's2', 'b2', '', '', ''] + (['z1', 'z2'] if zero else ['', '']) + ['', 'o' if own else ''], k=k, activation_type=how,
                             normalize_routing_weights=norm, expert_weight_bits=bits, weights_prepacked=0, **a)], x, c, {'y': T.FLOAT})
coded('columns', 5, 4, 2, 4)
coded('columns_zero', 3, 4, 1, 8, zero=True, how='swiglu', norm=0)
coded('blocks', 5, 4, 2, 4, block=16, how='swiglu')
coded('blocks_zero', 1, 6, 2, 4, block=16, zero=True, how='gelu')
coded('own_shares', 5, 4, 2, 2, block=16, own=True, norm=0)
coded('own_shares_whole', 1, 6, 2, 4, own=True)

# Channels in the last dimension, as ONNX Runtime's optimiser writes them
case('qlinear_conv_channels_last', [ms('QLinearConv', ['x', 'xs', 'xz', 'w', 'ws', 'wz', 'ys', 'yz', 'b'], channels_last=1, pads=[1, 0, 1, 1], strides=[2, 1], group=2)], {'x': u8(1, 7, 6, 4)},
     {'xs': f(0.02), 'xz': np.uint8(121), 'w': i8(6, 2, 3, 3), 'ws': steps_of(6), 'wz': np.zeros(6, np.int8), 'ys': f(0.5), 'yz': np.uint8(128), 'b': rng.integers(-99, 99, 6).astype(np.int32)}, {'y': T.UINT8})
case('qlinear_conv_channels_first', [ms('QLinearConv', ['x', 'xs', 'xz', 'w', 'ws', 'wz', 'ys', 'yz'])], {'x': u8(1, 4, 7, 6)},
     {'xs': f(0.02), 'xz': np.uint8(121), 'w': i8(6, 4, 3, 3), 'ws': f(0.03), 'wz': np.int8(0), 'ys': f(0.5), 'yz': np.uint8(128)}, {'y': T.UINT8})
case('nhwc_max_pool', [ms('NhwcMaxPool', ['x'], kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1)], {'x': i8(2, 6, 7, 3)}, {}, {'y': T.INT8})
case('transpose_matmul', [ms('TransposeMatMul', ['a', 'b'], transA=1, alpha=0.5)], {'a': fl(2, 7, 4), 'b': fl(2, 7, 5)}, {}, {'y': T.FLOAT})

# Graphs: what is not a node, and what inputs, constants and lists may be
rng = np.random.default_rng(11)
def own(name, model, inputs, opset=None):
    """a model as it is, of the same inputs"""
    if opset: model = h.make_model(model, producer_name='isamap', opset_imports=[h.make_opsetid('', opset), h.make_opsetid('com.microsoft', 1)])
    model.ir_version = 8
    save(name, model, inputs, onnxruntime.InferenceSession(model.SerializeToString(), providers=['CPUExecutionProvider']).run(None, inputs))
def info(name, a): return h.make_tensor_value_info(name, TYPE[str(a.dtype)], a.shape)
def some(name, t=T.FLOAT, shape=None): return h.make_tensor_value_info(name, t, shape)
def few(name, places):
    return h.make_sparse_tensor(h.make_tensor(name, T.FLOAT, [3], [1., -2., 3.]), h.make_tensor('', T.INT64, list(places.shape), places.ravel().tolist()), [4, 5])
x = fl(3, 4)
g = h.make_graph([h.make_node('MatMul', ['x', 'v'], ['a']), h.make_node('MatMul', ['x', 'w'], ['b']), h.make_node('Constant', [], ['k'], sparse_value=few('', np.array([0, 6, 7]))), h.make_node('MatMul', ['x', 'k'], ['c']),
                  h.make_node('Sum', ['a', 'b', 'c'], ['y'])], 'sparse', [info('x', x)], [some('y')])
g.sparse_initializer.extend([few('v', np.array([1, 5, 19])), few('w', np.array([[0, 1], [1, 0], [3, 4]]))])
own('sparse', g, {'x': x}, 15)
own('unread_text', h.make_graph([h.make_node('Relu', ['x'], ['y'])], 'unread', [info('x', x)], [some('y')], [h.make_tensor('labels', T.STRING, [2], [b'a', b'b'])]), {'x': x}, 15)
own('input_names', h.make_graph([h.make_node('Sub', ['a/b', 'a_b'], ['y'])], 'names', [info('a/b', x), info('a_b', x)], [some('y')]), {'a/b': x, 'a_b': fl(3, 4)}, 15)
part = h.make_graph([h.make_node('Mul', ['e', 'k'], ['r']), h.make_node('Shape', ['e'], ['q'])], 'part', [some('e'), some('k')], [some('r'), some('q', T.INT64)])
own('sequence_map', h.make_graph([h.make_node('SplitToSequence', ['x', 'sizes'], ['s'], axis=0), h.make_node('SequenceMap', ['s', 'row'], ['m', 'shapes'], body=part), h.make_node('ConcatFromSequence', ['m'], ['y'], axis=0),
                                  h.make_node('ConcatFromSequence', ['shapes'], ['z'], axis=0, new_axis=1)], 'map', [info('x', x), info('row', x[0])], [some('y'), some('z', T.INT64)], [tensor('sizes', np.array([1, 2]))]), {'x': x, 'row': fl(4)}, 17)
body = h.make_graph([h.make_node('SequenceAt', ['s', 'i'], ['e']), h.make_node('Add', ['t', 'e'], ['u']), h.make_node('Identity', ['go'], ['on'])], 'body', [some('i', T.INT64, []), some('go', T.BOOL, []), some('t', T.FLOAT, [1, 4])], [some('on', T.BOOL), some('u', T.FLOAT, [1, 4])])
own('loop_over_parts', h.make_graph([h.make_node('SplitToSequence', ['x'], ['s'], axis=0), h.make_node('Loop', ['n', '', 'start'], ['y'], body=body)], 'parts', [info('x', x)], [some('y')], [tensor('n', np.int64(3)), tensor('start', fl(1, 4))]), {'x': x}, 15)

# ai.onnx.ml: probabilities of support vectors, from those of each class against each other.
rng = np.random.default_rng(21)
for n, kernel in ((2, 'LINEAR'), (4, 'RBF')):
    d = n * (n - 1) // 2
    learned('ml_svc_odds_%d' % n, [h.make_node('SVMClassifier', ['x'], ['l', 'y'], domain='ai.onnx.ml', kernel_type=kernel, kernel_params=[0.25, 0.0, 3.0], classlabels_ints=list(range(3, 3 + n)), vectors_per_class=[2] * n, coefficients=fl(2 * n * (n - 1)).tolist(),
                                               support_vectors=fl(6 * n).tolist(), rho=fl(d).tolist(), prob_a=(-np.abs(fl(d)) - 0.5).tolist(), prob_b=(fl(d) * 0.1).tolist())], {'x': fl(9, 3)}, {'l': T.INT64, 'y': T.FLOAT})
learned('ml_one_hot_strict', [h.make_node('OneHotEncoder', ['x'], ['y'], domain='ai.onnx.ml', cats_int64s=[3, 5, 7], zeros=0)], {'x': np.array([[3, 7], [5, 3]])}, {'y': T.FLOAT})

# An output that is a sequence: each of its parts is an output.
def parts(name, nodes, inputs, outputs):
    model = h.make_model(h.make_graph(nodes, name, [h.make_tensor_value_info(k, T.FLOAT, v.shape) for k, v in inputs.items()], outputs), producer_name='isamap', opset_imports=[h.make_opsetid('', 15)], ir_version=8)
    results = onnxruntime.InferenceSession(model.SerializeToString(), providers=['CPUExecutionProvider']).run(None, inputs)
    save(name, model, inputs, [a for r in results for a in (r if isinstance(r, list) else [r])])
parts('sequence_output', [h.make_node('Relu', ['x'], ['r']), h.make_node('SequenceConstruct', ['r', 'x', 'w'], ['s']), h.make_node('Neg', ['w'], ['y'])], {'x': fl(2, 3), 'w': fl(4)}, [h.make_tensor_sequence_value_info('s', T.FLOAT, None), h.make_tensor_value_info('y', T.FLOAT, [4])])

# What stands for a few operators in a row; those that ONNX Runtime lacks on CPUs are computed here.
rng = np.random.default_rng(22)
TYPE['int16'] = T.INT16
def made(name, op, inputs, constants=None, outputs=('y',), kind=T.FLOAT, results=None, domain='com.microsoft', **a):
    case(name, [h.make_node(op, list(inputs) + list(constants or {}), list(outputs), domain=domain, **a)], inputs, constants or {}, {k: kind for k in outputs}, 21, results)
def erf(x): return np.vectorize(math.erf)(x).astype(np.float32)
made('ms_distances', 'CDist', {'a': fl(5, 3), 'b': fl(7, 3)}, metric='euclidean')
made('ms_distances_squared', 'CDist', {'a': fl(5, 3), 'b': fl(7, 3)})
made('ms_expand_dims', 'ExpandDims', {'x': fl(2, 3)}, {'k': np.int32(-2)})
made('ms_trilu', 'Trilu', {'x': fl(2, 3, 4)}, {'k': np.int64(1)}, upper=0)
made('ms_range', 'Range', {}, {'a': np.int32(3), 'b': np.int32(9)}, kind=T.INT32)
made('ms_gather_nd', 'GatherND', {'x': fl(3, 4), 'i': np.array([[1, 2], [0, 3]])})
made('ms_pad', 'Pad', {'x': fl(3, 4)}, {'p': np.array([1, 0, 0, 2]), 'v': f(2)})
made('ms_grid_sample', 'GridSample', {'x': fl(1, 2, 4, 5), 'g': fl(1, 3, 3, 2)}, mode='bicubic')
case('ms_unique', [ms('Unique', ['x'], ['y', 'i', 'n'])], {'w': fl(2)}, {'x': np.array([3, 1, 3, 2, 1], np.float32)}, {'y': T.FLOAT, 'i': T.INT64, 'n': T.INT64}, 21)
a, b = (rng.integers(-900, 900, s).astype(np.int16) for s in ((2, 3, 4), (4, 5)))
made('ms_matmul_16', 'MatMulInteger16', {'a': a, 'b': b}, kind=T.INT32, results=[a.astype(np.int32) @ b.astype(np.int32)])
def grouped(x, g, b, groups, silu):
    r = x.reshape(x.shape[0], -1, groups, x.shape[3] // groups)
    r = ((r - r.mean((1, 3), keepdims=True)) / np.sqrt(r.var((1, 3), keepdims=True) + 1e-5)).reshape(x.shape) * g + b
    return (r / (1 + np.exp(-r)) if silu else r).astype(np.float32)
x, g, b, s, bias = fl(2, 4, 5, 8), fl(8), fl(8), fl(2, 8), fl(8)
made('ms_group_norm', 'GroupNorm', {'x': x, 'g': g, 'b': b}, groups=4, activation=1, results=[grouped(x, g, b, 4, True)])
made('ms_group_norm_first', 'GroupNorm', {'x': x.transpose(0, 3, 1, 2).copy(), 'g': g, 'b': b}, groups=2, activation=0, channels_last=0, results=[grouped(x, g, b, 2, False).transpose(0, 3, 1, 2).copy()])
sum_ = x + s[:, None, None] + bias
made('ms_group_norm_skip', 'SkipGroupNorm', {'x': x, 'g': g, 'b': b, 's': s, 'bias': bias}, None, ('y', 'z'), groups=4, activation=1, results=[grouped(sum_, g, b, 4, True), sum_])
x, b, s = fl(2, 3, 8), fl(8), fl(2, 3, 8)
made('ms_bias_add', 'BiasAdd', {'x': x, 'b': b, 's': s}, results=[x + b + s])
l, r = np.split(x + b, 2, -1)
made('ms_bias_split_gelu', 'BiasSplitGelu', {'x': x, 'b': b}, results=[l * r * (1 + erf(r / np.sqrt(f(2)))) / 2])
x, w, b = fl(3, 4), fl(4, 5), fl(5)
p = x @ w + b
made('ms_gemm_fast_gelu', 'GemmFastGelu', {'x': x, 'w': w, 'b': b}, results=[p * (1 + np.tanh(f(0.7978845608) * (p + f(0.044715) * p ** 3))) / 2])
made('ms_gated_norm', 'GatedRMSNorm', {'x': fl(2, 3, 8), 's': fl(4), 'g': fl(2, 3, 8)})
made('ms_gated_norm_sigmoid', 'GatedRMSNorm', {'x': fl(2, 3, 8), 's': fl(8), 'g': fl(2, 3, 8)}, activation='sigmoid')
made('ms_branch_norm', 'BranchwiseRMSNorm', {'x': fl(2, 3, 8), 's': fl(2, 4)}, num_branches=2)
made('ms_branch_norm_line', 'BranchwiseRMSNorm', {'x': fl(2, 3, 8), 's': fl(8)}, num_branches=2)
made('ms_branch_norm_grouped', 'BranchwiseRMSNorm', {'x': fl(2, 3, 8), 's': fl(3, 8)})
made('ms_scaled_silu', 'ScaledSiLU', {'x': fl(2, 3)}, alpha=1.7)
made('ms_gated_add', 'GatedAdd', {'x': fl(2, 3, 4), 'z': fl(2, 3, 4), 'g': fl(2, 3, 1)})
made('ms_attention_gate', 'LinearAttentionGate', {'a': fl(2, 3, 4), 'd': fl(4), 's': -np.abs(fl(4)), 'b': fl(2, 3, 4)}, None, ('y', 'z'))
made('ms_causal_conv', 'CausalConvWithState', {'x': fl(2, 6, 3), 'w': fl(3, 1, 4), 'b': fl(3), 'p': fl(2, 6, 3)}, None, ('y', 'z'), channels_last=1, dilation=2, activation='silu')
for kind in (0, 1): made('ms_matmul_bnb4_%d' % kind, 'MatMulBnb4', {'a': fl(3, 20)}, {'b': u8(30), 'm': np.abs(fl(4))}, K=20, N=3, block_size=16, quant_type=kind)
for name, rule, q, k, each in (('delta', 'gated_delta', 4, 2, 1), ('gated', 'gated', 2, 2, 4), ('plain', 'linear', 2, 4, 0), ('few', 'delta', 3, 1, 0)):
    ins = {'q': fl(2, 5, q * 4), 'k': fl(2, 5, k * 4) / 2, 'v': fl(2, 5, k * 3), 'p': fl(2, k, 4, 3)}
    if 'gated' in rule: ins['d'] = -np.abs(fl(2, 5, k * each))
    if 'delta' in rule: ins['b'] = np.abs(fl(2, 5, k)) / 2
    order = [i if i in ins else '' for i in 'qkvpdb']
    case('linear_attention_' + name, [ms('LinearAttention', order, ('y', 'z'), q_num_heads=q, kv_num_heads=k, update_rule=rule)], ins, {}, {'y': T.FLOAT, 'z': T.FLOAT}, 21)
made('global_lp_pool', 'GlobalLpPool', {'x': fl(2, 3, 4, 5)}, domain='', p=3)
regions = np.concatenate([rng.integers(0, 2, (9, 1)), rng.integers(-2, 14, (9, 4))], 1).astype(np.float32)
made('max_roi_pool', 'MaxRoiPool', {'x': fl(2, 3, 9, 11), 'r': regions}, domain='', pooled_shape=[3, 2], spatial_scale=0.5)
made('mel_weights', 'MelWeightMatrix', {}, {'a': np.int64(20), 'b': np.int64(64), 'c': np.int64(8000), 'l': f(100), 'h': f(3000)}, domain='')
made('mel_weights_narrow', 'MelWeightMatrix', {}, {'a': np.int64(64), 'b': np.int64(32), 'c': np.int64(16000), 'l': f(0), 'h': f(8000)}, domain='')

# Reductions of nothing, bits of another type, and channels before the block.
rng = np.random.default_rng(23)
over = ('ReduceSum', 'ReduceProd', 'ReduceMax', 'ReduceMin', 'ReduceL2', 'ReduceLogSum', 'ReduceLogSumExp')
case('reduce_nothing', [h.make_node('Slice', ['x', 'from', 'to', 'axis'], ['e'])] + [h.make_node(o, ['e', 'axis'], [o]) for o in over] + [h.make_node('Concat', list(over), ['y'], axis=1)], {'x': fl(3, 4)},
     {'from': np.array([2]), 'to': np.array([2]), 'axis': np.array([1])}, {'y': T.FLOAT}, 20, [np.float32([[0, 1, -np.inf, np.inf, 0, -np.inf, -np.inf]] * 3)])
x, K = rng.integers(-99, 99, (2, 5)).astype(np.int32), fl(5) / 9
case('bit_cast', [h.make_node('BitCast', ['x'], ['y'], to=T.UINT32), h.make_node('BitCast', ['k'], ['b'], to=T.INT32), h.make_node('Add', ['x', 'b'], ['z'])], {'x': x}, {'k': K}, {'y': T.UINT32, 'z': T.INT32}, 26, [x.view(np.uint32), x + K.view(np.int32)])
x = fl(2, 3, 4, 6)
case('space_to_depth_crd', [h.make_node('SpaceToDepth', ['x'], ['y'], blocksize=2, mode='CRD')], {'x': x}, {}, {'y': T.FLOAT}, 28, [x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4).reshape(2, 12, 2, 3)])
one('ml_binarizer_space', 'Binarizer', fl(2, 3, 4), T.FLOAT, threshold=0.25)
# Backwards from before the beginning: the specification begins with the first element, where numpy has none.
case('slice_back_from_before', [h.make_node('Slice', ['x', 'from', 'to', 'axes', 'steps'], ['y'])], {'x': fl(3, 4)}, {'from': np.array([-9, 2]), 'to': np.array([-2**62, -9]), 'axes': np.array([0, 1]), 'steps': np.array([-2, -1])}, {'y': T.FLOAT})
# Updates that meet one place: the last counts, as ONNX Runtime has it; where they all are equal, as a mask that is set twice, that is the only answer there is.
own = np.random.default_rng(41)
again = lambda *s: own.standard_normal(s).astype(np.float32)
met = np.array([[3, 1, 3, 3, -1], [0, 0, 4, 4, 4]])
case('scatter_elements_again', [h.make_node('ScatterElements', ['x', 'i', 'u'], ['y'], axis=1)], {'x': again(3, 6), 'i': met, 'u': again(2, 5)}, {}, {'y': T.FLOAT}, 18)
case('scatter_elements_again_known', [h.make_node('ScatterElements', ['x', 'i', 'u'], ['y'], axis=1)], {'x': again(3, 6), 'u': again(2, 5)}, {'i': met}, {'y': T.FLOAT}, 18)
for name, at in (('rows', np.array([[1], [-2], [1]])), ('grid', np.array([[[1, 2], [0, 2], [1, 2]], [[4, 1], [4, -3], [0, 2]]])), ('one', np.array([-1, 2]))):
    case('scatter_nd_again_' + name, [h.make_node('ScatterND', ['x', 'i', 'u'], ['y'])], {'x': again(5, 4, 3), 'i': at, 'u': again(*at.shape[:-1], *(5, 4, 3)[at.shape[-1]:])}, {}, {'y': T.FLOAT}, 18)
case('scatter_nd_again_mask', [h.make_node('ScatterND', ['x', 'i', 'u'], ['y'])], {'x': np.zeros((5, 2), bool), 'i': np.array([[1], [3], [1]]), 'u': np.ones((3, 2), bool)}, {}, {'y': T.BOOL}, 18)
# Updates of nothing, at places that are joined from nothing, as where PyTorch assigns to an empty slice
case('scatter_nothing', [h.make_node('Slice', ['u', 'none', 'none', 'none'], ['v']), h.make_node('Slice', ['p', 'none', 'none', 'none'], ['q']), h.make_node('Concat', ['q', 'q', 'q'], ['i'], axis=-1), h.make_node('ScatterND', ['x', 'i', 'v'], ['y']),
     h.make_node('Squeeze', ['q', 'last'], ['e']), h.make_node('ScatterElements', ['m', 'e', 'v'], ['z']), h.make_node('Shape', ['i'], ['s'])], {'x': again(5, 4, 3), 'm': again(5, 4), 'u': again(2, 4)},
     {'p': np.zeros((2, 4, 1), np.int64), 'none': np.array([0]), 'last': np.array([-1])}, {'y': T.FLOAT, 'z': T.FLOAT, 's': T.INT64}, 17)
# Parts of which the last has nothing, as where PyTorch cuts into chunks
case('split_to_sequence_nothing', [h.make_node('SplitToSequence', ['x', 'n'], ['s'], axis=1), h.make_node('SequenceAt', ['s', 'one'], ['y']), h.make_node('ConcatFromSequence', ['s'], ['z'], axis=1)], {'x': again(2, 6)}, {'n': np.array([2, 4, 0]), 'one': np.int64(1)}, {'y': T.FLOAT, 'z': T.FLOAT}, 17)
# More extents than a program has axes, with recurrences among them: each line is one element longer than the one before
own = np.random.default_rng(43)
nodes, means = [h.make_node('LSTM', ['s', 'w', 'r'], ['', 'x3', ''], hidden_size=3)], []
for k in range(3, 85):
    means.append('m%d' % k)
    nodes += [h.make_node('Pad', ['x%d' % k, 'pads', 'one'], ['p%d' % k]), h.make_node('Sin', ['p%d' % k], ['x%d' % (k + 1)]), h.make_node('ReduceMean', ['x%d' % k], ['m%d' % k], axes=[2])]
nodes += [h.make_node('Concat', means, ['y'], axis=2), h.make_node('CumSum', ['x80', 'last'], ['z'])]
case('many_axes', nodes, {'s': own.standard_normal((5, 1, 2)).astype(np.float32)}, {'w': own.standard_normal((1, 12, 2)).astype(np.float32), 'r': own.standard_normal((1, 12, 3)).astype(np.float32), 'pads': np.array([0, 0, 0, 0, 0, 1]), 'one': f(0.5), 'last': np.int64(2)}, {'y': T.FLOAT, 'z': T.FLOAT})
