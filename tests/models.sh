#!/usr/bin/env bash
# Models of the Python packages that are installed, beside ONNX Runtime: run as shipped, with its values. Without the packages nothing is tried.
set -u
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! python3 -c 'import numpy, onnx, onnxruntime' 2>/dev/null; then
  echo "skipped: the Python packages numpy, onnx and onnxruntime are not installed"
  exit 0
fi
grep -q asan <<<"$(ldd "$build/isamap")" && { echo "skipped: Python cannot load a library that is built with a sanitizer"; exit 0; }
failed=0 passed=0
check() { if "${@:2}"; then passed=$((passed + 1)); else echo "FAILED: $1"; failed=$((failed + 1)); fi; }
run() { ISAMAP_BUILD=$build ISAMAP_MACHINE_PATH=machines python3 "$1/models" --packages "$work/packages" --rounds 1 --seconds 0 "${@:2}" >"$work/out" 2>"$work/err"; }

# A package made here: one model as it should be, one whose values ONNX Runtime has otherwise, one that is refused; and one that is absent.
mkdir -p "$work/packages" "$work/scripts"
python3 - "$work" <<'PYTHON'
import sys, zipfile
from onnx import TensorProto as T, helper as h
import onnx
work = sys.argv[1]
def save(z, name, nodes, opset=17):
    x, y = [h.make_tensor_value_info(k, T.FLOAT, [2, "N"]) for k in "xy"]
    model = h.make_model(h.make_graph(nodes, name, [x], [y]), opset_imports=[h.make_opsetid("", opset)], ir_version=8)
    z.writestr(f"made/{name}.onnx", model.SerializeToString())
with zipfile.ZipFile(work + "/packages/made-1-py3-none-any.whl", "w") as z:
    save(z, "good", [h.make_node("Sigmoid", ["x"], ["t"]), h.make_node("Softmax", ["t"], ["y"])])
    save(z, "random", [h.make_node("RandomNormalLike", ["x"], ["t"], seed=1.0), h.make_node("Add", ["x", "t"], ["y"])])
text = open("scripts/models").read()
start = text.index('MODELS = """') + len('MODELS = """')
lines = "\nmade made/good.onnx -D N=5 x=0..9\nmade made/random.onnx -D N=5\nnowhere nowhere/none.onnx\n"
open(work + "/scripts/models", "w").write(text[:start] + lines + text[text.index('"""', start):])
PYTHON
run "$work/scripts" --only good
check "a model of a wheel" test $? -eq 0
check "its row" grep -qE '^\| made \| good \| 2 \| [0-9.e-]+ \| [0-9.e-]+ \|' "$work/out"
run "$work/scripts"
check "one that is refused" test $? -eq 1
check "the reason" grep -q 'RandomNormalLike.*this operator is not supported' "$work/out"
check "one that is absent" grep -q '^absent: nowhere' "$work/err"
printf 'before\n<!-- models -->\nold\n<!-- end of models -->\nbehind\n' >"$work/page.md"
run "$work/scripts" --only good "$work/page.md"
check "a table in a page" bash -c "grep -q '^| made | good' $work/page.md && ! grep -q old $work/page.md && grep -q behind $work/page.md"
# What is installed here.
run scripts
check "packages that are installed: $(tail -3 "$work/err")" test $? -eq 0
grep -c '^absent' "$work/err" | sed 's/$/ models are of packages that are not installed/'
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
