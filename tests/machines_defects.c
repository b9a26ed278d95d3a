/* Planted defects: a small edit in a good machine file, and what must be said about it, where. */
#include "machines/machine.h"
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#define SHIPPED "machines/"
#define DRAFT "tests/data/machines/"

struct defect {
    const char *file, *old, *new; /* the first occurrence of old becomes new */
    const char *says;             /* part of some message */
    const char *at; /* this text's line is the message's line; NULL: anywhere in a file. "|" inside:
                       its column too */
};

static const struct defect names[] = {
    {SHIPPED "edge16.xml", "queue=\"load\" from", "queue=\"lod\" from",
     "no queue 'lod', expected one of: load exec store", "queue=\"lod\""},
    {DRAFT "gemmini.xml", "bus=\"dma\" overhead", "bus=\"dmx\" overhead",
     "no bus 'dmx', expected one of: dma", "bus=\"dmx\""},
    {DRAFT "vdla.xml", "memory=\"wgt\"/>", "memory=\"wht\"/>", "no memory 'wht'", "memory=\"wht\""},
    {DRAFT "vdla.xml", "format=\"loops\"", "format=\"lops\"", "no format 'lops'", NULL},
    {DRAFT "amx.xml", "amx-int8 amx-bf16\"", "amx-int9\"", "no feature 'amx-int9'", "amx-int9"},
    {DRAFT "gemmini.xml", "need state=\"exec\"", "need state=\"exe\"", "no state 'exe'",
     "state=\"exe\""},
    {DRAFT "sm90.xml", "completes=\"wg\"", "completes=\"wq\"", "no sync 'wq'", "completes=\"wq\""},
    {DRAFT "cluster.xml", "across=\"node\"", "across=\"nod\"", "no unit 'nod'", "across=\"nod\""},
    {SHIPPED "edge16.xml", "value=\"addr(S)/16\"", "value=\"addr(Q)/W\"",
     "'addr' in field value 'addr(Q)/W', expected addr(OPERAND)", "addr(Q)/W"},
    {SHIPPED "edge16.xml", "pop(e2l)", "pop(e2x)", "expected pop(SYNC)", NULL},
    {DRAFT "vdla.xml", "step(A,outer)", "step(A,outr)", "expected step(OPERAND, LOOP)",
     "step(A,outr)"},
    {DRAFT "gemmini.xml", "value=\"load.stride\"", "value=\"load.stripe\"",
     "'stripe' in field value", "load.stripe"},
    {DRAFT "gemmini.xml", "slot(load)\"", "slot(lord)\"", "expected slot(STATE)", "slot(lord)"},
    {DRAFT "blas.xml", "500 + M*N*K/28", "500 + M*N*Q/28", "'Q' in interval", "M*N*Q"},
    {SHIPPED "cpu-blas.xml", "M*N*K/RATE", "M*N*K/RATS", "'RATS' in interval", "RATS"},
    {DRAFT "blocks.xml", "kernel mm(M=1..32", "kernel mm(L=1..32, M=L",
     "'M' in interval 'M*N*K', expected what it stands for, written out", "interval=\"M*N*K\""},
    {DRAFT "sim/pipe.xml", "\"N\" latency=\"5\"", "\"N\" latency=\"Q\"", "'Q' in latency",
     "latency=\"Q\""},
    {DRAFT "sim/pipe.xml", "overhead=\"2\"", "overhead=\"Q\"", "'Q' in overhead", "overhead=\"Q\""},
    {DRAFT "sim/pipe.xml", "\"N\" latency=\"5\"", "\"N\" energy=\"Q\"", "'Q' in energy",
     "energy=\"Q\""},
    {DRAFT "sm90.xml", "dim(S,1)", "dim(S,2)", "expected dim(OPERAND, DIMENSION)", "dim(S,2)"},
    {SHIPPED "edge16.xml", "size=\"SPAD\"   word", "size=\"SPADE\"   word",
     "'SPADE' has no value here, expected a parameter", "SPADE\""},
    {SHIPPED "cpu-avx2.xml", "hidden=\"HIDDEN/100\"", "hidden=\"1.8\"",
     "hidden '1.8' of 'memory' is 1.8, expected a share from 0 to 1", "hidden=\"1.8\""},
    {SHIPPED "cpu-avx2.xml", "writeback=\"WRITEBACK/100\"", "writeback=\"1.8\"",
     "writeback '1.8' of 'memory' is 1.8, expected a share from 0 to 1", "writeback=\"1.8\""},
    {SHIPPED "cpu-avx2.xml", "<ahead><emit as=\"llvm\">", "<ahead><emit as=\"c\">",
     "the 'ahead' of 'load.f32' is in 'c', expected llvm", "<ahead><emit as=\"c\">"},
    {SHIPPED "cpu-avx2.xml", "from=\"l1\" to=\"ymm\" queue=\"vld\" latency=\"7\"",
     "from=\"ymm\" to=\"ymm\" queue=\"vld\" latency=\"7\"",
     "'load.f32' says how lines of a cache are asked for, but neither stores to one nor reads one, "
     "expected no 'ahead'",
     "<ahead>"},
    {SHIPPED "cpu-avx2.xml", "ahead=\"FAR\"", "ahead=\"far\"",
     "ahead 'far' of operand 'S' is no size that the schedule chooses, expected one of those of "
     "'load.f32.ahead'",
     "ahead=\"far\""},
    {SHIPPED "cpu-avx2.xml", "ahead=\"FAR\"/>  <operand buffer=\"D\"/>",
     "/>  <operand buffer=\"D\" ahead=\"FAR\"/>",
     "ahead on operand 'D' of 'load.f32.ahead', expected what a move reads from a cache",
     "ahead=\"FAR\""},
    {SHIPPED "cpu-avx2.xml",
     "out D: $(t)[8]  axes j: 8  D[j] = S[j] }</semantics>\n        "
     "<operand buffer=\"S\" align=\"4\" ahead",
     "out D: $(t)[8]  axes j: 8  D[j] = S[j*(1 - min(FAR - 1, 1))] }</semantics>\n        "
     "<operand buffer=\"S\" align=\"4\" ahead",
     "the semantics of 'load.f32.ahead' depend on size 'FAR', which says how far ahead operand 'S' "
     "asks, expected a size of its own",
     "ahead=\"FAR\""},
    {DRAFT "avx512.xml", "size=\"L2\"", "size=\"L9\"", "'L9' has no value here", "L9"},
    {DRAFT "sm90.xml", "memory=\"reg smem dram\"", "memory=\"reg smen dram\"", "no memory 'smen'",
     "smen"},
    {DRAFT "vdla.xml", "table=\"uop\"", "table=\"upo\"", "no memory 'upo'", "table=\"upo\""},
    {SHIPPED "cpu-avx2.xml", "needs=\"avx2 fma\"", "needs=\"avx2 fme\"",
     "no feature 'fme', expected one of: avx2 fma", "fme"},
    {SHIPPED "cpu-avx512.xml", "units=\"3\"", "units=\"1\"",
     "'units' of 'div.near.f32' is 1, expected more than the 1 that every '/' may be off",
     "units=\"1\""},
    {SHIPPED "cpu-avx512.xml", "units=\"3\"", "units=\"256\"", "and at most 255", "units=\"256\""},
    {SHIPPED "cpu-avx512.xml", "units=\"3\"", "units=\"2.5\"", "expected a whole number from 1",
     "units=\"2.5\""},
    {SHIPPED "cpu-avx512.xml", "C[j] = A[j] / s[0] }</semantics>",
     "C[j] = 2 * A[j] / s[0] }</semantics>",
     "expected semantics of one such operation on floats, which is set", "units=\"3\""},
    /* used twice */
    {SHIPPED "edge16.xml", "<queue id=\"exec\"  depth=\"512\"/>",
     "<queue id=\"load\"  depth=\"512\"/>", "queue 'load' is defined twice", NULL},
    {DRAFT "gemmini.xml", "<unit id=\"mesh\">",
     "<unit id=\"mesh\"><memory id=\"spad\" size=\"16\"/>",
     "memory 'spad' is defined twice, first at " DRAFT "gemmini.xml:7",
     "<memory id=\"spad\" size=\"16\"/>"},
    {DRAFT "vdla.xml", "<bus id=\"port\"", "<bus id=\"uop\"",
     "bus 'uop': the id is taken by the memory", "<bus id=\"uop\""},
    {DRAFT "avx512.xml", "id=\"vnni\" queue", "id=\"fma.bcast\" queue",
     "instruction 'fma.bcast' is defined twice", "id=\"fma.bcast\" queue=\"vec\" latency=\"5\""},
    {DRAFT "vdla.xml", "<loop id=\"inner\"", "<loop id=\"outer\"",
     "loop 'outer' of 'gemm' is defined twice", NULL},
};

static const struct defect operands[] = {
    {SHIPPED "edge16.xml", "<operand buffer=\"B\" memory=\"wgt\"/>", "",
     "buffer 'B' of 'mm16' has no operand", "in |B: i8[T,T]"},
    {DRAFT "avx512.xml", "<operand buffer=\"B\" memory=\"zmm\" layout=\"k,j -> j, k\"/>", "",
     "buffer 'B' of 'vnni' has no operand", "in |B: i8[4,16]"},
    {DRAFT "gemmini.xml", "<operand buffer=\"s\" memory=\"imm\"/>",
     "<operand buffer=\"t\" memory=\"imm\"/>",
     "operand 't' of 'mvout.i8' is no buffer of its semantics", "<operand buffer=\"t\""},
    {DRAFT "vdla.xml", "<operand buffer=\"X\" memory=\"acc\"/>",
     "<operand buffer=\"X\" memory=\"acc\"/><operand buffer=\"Y\" memory=\"acc\"/>",
     "operand 'Y' of 'alu.min' is no buffer", "<operand buffer=\"Y\""},
    {DRAFT "blas.xml", "<operand buffer=\"C\" memory=\"dram\"",
     "<operand buffer=\"A\" memory=\"dram\"/><operand buffer=\"C\" memory=\"dram\"",
     "a second operand for buffer 'A'", "<operand buffer=\"A\" memory=\"dram\"/>"},
    {DRAFT "vdla.xml", "C[j] += i32(A[k])", "C[j] += i32(A[k,j])", "A", "C[j] += i32(|A[k,j]"},
    {SHIPPED "edge16.xml", "Y[i,j] = i8(", "Y[i] = i8(", "Y", "|Y[i] = i8("},
    {SHIPPED "cpu-avx2.xml", "C[j] += A[j] * B[j]", "C[j] += A[j] * Q[j]", "Q",
     "C[j] += A[j] * |Q[j]"},
    {DRAFT "amx.xml", "layout=\"k,j -> k/$(g), j, k%$(g)\"", "layout=\"k -> k/$(g), k, k%$(g)\"",
     "has 1 indices, expected 2", "layout=\"k ->"},
    {DRAFT "gemmini.xml", "strides=\"16*DIM, DIM, 1\"", "strides=\"DIM, 1\"",
     "has 2 strides, expected 3, one for each dimension", "strides=\"DIM, 1\" accumulate=\"add\""},
    {DRAFT "amx.xml", "strides=\"$(p), $(g), 1\"", "strides=\"$(p), 1\"",
     "has 2 strides, expected 3, one for each place", NULL},
    {SHIPPED "edge16.xml", "in A: i8[M,T]", "in A: i7[M,T]", "i7", "in A: |i7"},
    {DRAFT "gemmini.xml",
     "<operand buffer=\"B\" memory=\"$(mem)\" strides=\"DIM, 1\" also=\"pe\"/>",
     "<operand buffer=\"B\" strides=\"DIM, 1\"/>", "is in no memory",
     "<operand buffer=\"B\" strides"},
    {DRAFT "gemmini.xml", "<operand buffer=\"A\" memory=\"spad\"",
     "<operand buffer=\"A\" memory=\"acc\"", "is i8, but memory 'acc' does not hold that type",
     NULL},
    {DRAFT "vdla.xml", "memory=\"wgt\"/>", "memory=\"acc\"/>",
     "operand 'B' of 'gemm' is i8, but memory 'acc'", "<operand buffer=\"B\""},
    {DRAFT "vdla.xml", "accumulate=\"add\"", "also=\"dram\"", "'add' in field value", NULL},
    {DRAFT "gemmini.xml", "<operand buffer=\"S\" strides=\"rs, DIM, 1\"/>",
     "<operand buffer=\"S\" strides=\"rs, DIM, 1\" accumulate=\"sub\"/>",
     "accumulate on operand 'S' of 'mvin.spad', which is 'in', expected an inout buffer",
     "accumulate=\"sub\""},
};

static const struct defect layouts[] = {
    {DRAFT "amx.xml", "layout=\"k,j -> k/$(g), j, k%$(g)\"", "layout=\"k,j -> k/$(g), j, k/$(g)\"",
     "in one place, expected a place for each", "k/$(g), j, k/$(g)"},
    {DRAFT "sm90.xml", "lane:4*(i%8)+j/2, i/8, j%2", "lane:4*(i%8)+j/2, i/8, j/2", "in one place",
     NULL},
    {DRAFT "blas.xml", "i,k -> k, i", "i,k -> k, 0", "puts elements 0,0 and 1,0 in one place",
     "i,k -> k, 0"},
    {DRAFT "sm90.xml", "lane:4*(i%8)+j/2, i/8, j%2", "lane:4*(i%8)+j/2, i/4, j%2", "leaves holes",
     NULL},
    {DRAFT "sm90.xml", "warp:i/16, lane", "warp:i/16*2, lane",
     "uses warp 6, expected numbers below its count 4", NULL},
    {DRAFT "sm90.xml", "count=\"32\" index", "count=\"16\" index",
     "uses lane 31, expected numbers below its count 16", NULL},
    {DRAFT "cluster.xml", "layout=\"q,x -> node:q, x\"", "layout=\"q,x -> node:q+1, x\"",
     "uses node 4, expected numbers below its count 4", "node:q+1"},
    {DRAFT "cluster.xml", "layout=\"p,x -> node:p, x\"", "layout=\"p,x -> nod:p, x\"",
     "names unit 'nod', expected a unit", "nod:p"},
    {DRAFT "cluster.xml", "layout=\"p,x -> node:p, x\"", "layout=\"p,x -> p, x\"",
     "of which each 'node' has its own, expected a layout with a place 'node:", "p,x -> p, x"},
    {DRAFT "sm90.xml", "<operand buffer=\"A\" memory=\"reg\" layout=\"i,k -> lane:",
     "<operand buffer=\"A\" memory=\"reg\" layout=\"i,k -> block:",
     "names unit 'block', expected one inside the issuing unit 'warp'", "block:4"},
    {DRAFT "avx512.xml", "layout=\"k,j -> j, k\"", "layout=\"k,j -> j, k-1\"", "negative places",
     "k-1"},
    {DRAFT "avx512.xml", "layout=\"k,j -> j, k\"", "layout=\"k,j -> j*k\"",
     "expected a number as one factor", "j*k"},
    {DRAFT "avx512.xml", "layout=\"k,j -> j, k\"", "layout=\"k,j -> j-k, k\"", "negative places",
     "j-k"},
    {DRAFT "avx512.xml", "layout=\"k,j -> j, k\"", "layout=\"k,j -> (k+j)%16, k/4\"",
     "puts elements 0,1 and 1,0 in one place", "(k+j)"},
};

static const struct defect bits[] = {
    {SHIPPED "edge16.xml", "<field at=\"26\"  bits=\"32\" value=\"addr(S)/16\"/>",
     "<field at=\"25\"  bits=\"32\" value=\"addr(S)/16\"/>", "overlap at bit 25", "at=\"25\""},
    {DRAFT "vdla.xml", "<field at=\"7\" bits=\"1\" value=\"1-add\"/>",
     "<field at=\"8\" bits=\"1\" value=\"1-add\"/>",
     "'first(u)' and '1-add' of 'gemm' overlap at bit 8", "at=\"8\" bits=\"1\" value=\"1-add\""},
    {DRAFT "gemmini.xml", "<field at=\"128\" bits=\"7\" value=\"0\"/>",
     "<field at=\"129\" bits=\"7\" value=\"0\"/>",
     "takes bits 129 to 135, expected it inside the word of 135", "at=\"129\""},
    {DRAFT "vdla.xml", "<field at=\"22\" bits=\"10\" value=\"word(B)\"/>",
     "<field at=\"23\" bits=\"10\" value=\"word(B)\"/>", "expected it inside the word of 32",
     "at=\"23\""},
    {DRAFT "vdla.xml", "<field at=\"11\" bits=\"11\" value=\"word(A)\"/>",
     "<field at=\"11\" bits=\"10\" value=\"word(A)\"/>",
     "field 'word(A)' of 'gemm' reaches 2047, which 10 bits cannot hold",
     "bits=\"10\" value=\"word(A)\""},
    {SHIPPED "edge16.xml", "<field at=\"20\"  bits=\"8\"  value=\"word(B)\"/>",
     "<field at=\"20\"  bits=\"7\"  value=\"word(B)\"/>", "reaches 255, which 7 bits cannot hold",
     "bits=\"7\"  value=\"word(B)\""},
    {SHIPPED "edge16.xml", "<field at=\"39\"  bits=\"5\"  value=\"M\"/>",
     "<field at=\"39\"  bits=\"4\"  value=\"M\"/>", "field 'M' of 'mm16' reaches 16",
     "bits=\"4\"  value=\"M\""},
    {DRAFT "gemmini.xml", "<field at=\"128\" bits=\"7\" value=\"pick(slot(load), 2, 1, 14)\"/>",
     "<field at=\"128\" bits=\"3\" value=\"pick(slot(load), 2, 1, 14)\"/>",
     "reaches 14, which 3 bits cannot hold", "pick(slot(load)"},
    {DRAFT "vdla.xml", "max=\"16383\"/>\n      <loop id=\"inner\"",
     "max=\"16384\"/>\n      <loop id=\"inner\"",
     "field 'extent(outer)' of 'gemm' reaches 16384, which 14 bits cannot hold",
     "value=\"extent(outer)\""},
    {DRAFT "vdla.xml", "max=\"8191\" table", "max=\"16384\" table",
     "field 'first(u)+extent(u)' of 'gemm' reaches 24575, which 14 bits cannot hold",
     "value=\"first(u)+extent(u)\""},
    {DRAFT "vdla.xml", "bits=\"13\" value=\"first(u)\"", "bits=\"12\" value=\"first(u)\"",
     "field 'first(u)' of 'gemm' reaches 8191, which 12 bits cannot hold", "value=\"first(u)\""},
    {SHIPPED "edge16.xml", "value=\"1-add\"", "value=\"0-add\"", "reaches -1", "0-add"},
    {SHIPPED "edge16.xml", "<format id=\"head\" bits=\"128\">",
     "<format id=\"head\" bits=\"127.5\">", "bits '127.5'", NULL},
    {SHIPPED "edge16.xml", "bits=\"1\"  value=\"1-add\"", "bits=\"65\"  value=\"1-add\"",
     "field bits '65' in 'mm16', expected a whole number from 1 to 64", "bits=\"65\""},
    {DRAFT "gemmini.xml", "<word format=\"mvout\">", "<word>", "a word of unknown size", "<word>"},
    {DRAFT "vdla.xml", "id=\"loops\" bits=\"128\" format=\"head\"",
     "id=\"loops\" bits=\"128\" format=\"loops\"", "builds on itself", "id=\"loops\""},
    {SHIPPED "edge16.xml", "word=\"T\"     banks=\"2\"", "word=\"T\" align=\"24\" banks=\"2\"",
     "align of memory 'inp' is 24, expected a multiple of its word of 16", "<memory id=\"inp\""},
    {SHIPPED "cpu-avx2.xml", "<memory id=\"l2\"", "<memory id=\"l2\" align=\"64\"",
     "align of 'l2' is 64, expected none: that of the memory it caches counts",
     "<memory id=\"l2\""},
    {SHIPPED "gemmini.xml", "size=\"DIM*DIM\" word=\"DIM*DIM\"", "size=\"128\" word=\"128\"",
     "operand 'B' of 'ws.first' takes up to 256 bytes, of which a copy remains in memory 'pe' of "
     "128, expected one that it fits",
     "<operand buffer=\"B\" memory=\"$(mem)\""},
    /* only at one end of a parameter's range */
    {SHIPPED "edge16.xml", "range=\"16K..64K\"", "range=\"16K..128K\"",
     "with SPAD=131072: field 'word(A)' of 'mm16' reaches 8191", "value=\"word(A)\""},
    {DRAFT "vdla.xml", "range=\"8K..256K\"", "range=\"8K..512K\"",
     "with WGT=524288: field 'word(B)' of 'gemm' reaches 2047", "value=\"word(B)\""},
    {DRAFT "vdla.xml", "range=\"8K..32K\"", "range=\"8..32K\"",
     "with INP=8: memory 'inp' of 8 bytes is no whole number of words", "<memory id=\"inp\""},
    {DRAFT "cluster.xml", "range=\"1..64\"", "range=\"0..64\"", "with NODES=0", NULL},
    {SHIPPED "cpu-avx2.xml", "range=\"1..64\"", "range=\"3..64\"",
     "parameter 'CORES' is 2, expected a value in its range 3..64", "range=\"3..64\""},
};

static const struct defect states[] = {
    {DRAFT "gemmini.xml", "<need state=\"exec\" value=\"1\"/>",
     "<need state=\"exec\" value=\"1, 2\"/>", "has 2 values for state 'exec', expected 1",
     "value=\"1, 2\""},
    {DRAFT "sm90.xml", "dim(S,0), ld*2, 64, R\"", "dim(S,0), ld*2, 64\"",
     "has 5 values for state 'tmap', expected 6", "ld*2, 64\""},
    {DRAFT "amx.xml", "value=\"R, B\"/>", "value=\"max(R, B)\"/>",
     "has 1 values for state 'shape', expected 2", "value=\"max(R, B)\""},
    {DRAFT "amx.xml", "<need state=\"shape\" of=\"C\" value=\"M, 4*N\"/>",
     "<need state=\"shape\" value=\"M, 4*N\"/>", "names no operand", "<need state=\"shape\" value"},
    {DRAFT "amx.xml", "of=\"C\" value=\"M, 4*N\"", "of=\"Q\" value=\"M, 4*N\"",
     "is of 'Q', expected one of its operands", "of=\"Q\""},
    {DRAFT "gemmini.xml", "sets=\"exec\"", "sets=\"store\"", "nothing sets state 'exec'",
     "<state id=\"exec\""},
    {DRAFT "vdla.xml", "<queue id=\"load\"", "<state id=\"mode\" fields=\"a\"/><queue id=\"load\"",
     "nothing sets state 'mode', expected a configure", "<state id=\"mode\""},
};

static const struct defect chains[] = {
    {SHIPPED "edge16.xml", "id=\"ld.$(mem)\" queue=\"load\" from=\"dram\" to=\"$(mem)\"",
     "id=\"ld.$(mem)\" queue=\"load\" from=\"dram\" to=\"inp\"", "nothing fills memory 'wgt'",
     "<memory id=\"wgt\""},
    {DRAFT "vdla.xml", "from=\"dram\" to=\"uop\"", "from=\"dram\" to=\"acc\"",
     "nothing fills memory 'uop'", "<memory id=\"uop\""},
    {DRAFT "gemmini.xml", " also=\"pe\"", "", "nothing fills memory 'pe'", "<memory id=\"pe\""},
    {SHIPPED "edge16.xml",
     "<sync id=\"e2s\" kind=\"token\" from=\"exec\"  to=\"store\" depth=\"255\"/>",
     "<sync id=\"e2s\" kind=\"token\" from=\"exec\"  to=\"load\" depth=\"255\"/>",
     "queue 'exec' writes memory 'out', which queue 'store' uses, but no chain of syncs leads from "
     "'exec' to 'store'",
     "<memory id=\"out\""},
    {DRAFT "vdla.xml", "<sync id=\"l2c\" kind=\"token\" from=\"load\"  to=\"exec\"",
     "<sync id=\"l2c\" kind=\"token\" from=\"load\"  to=\"load\"",
     "queue 'load' writes memory 'inp', which queue 'exec' uses", "<memory id=\"inp\""},
    {DRAFT "gemmini.xml", "from=\"ld ex st\" to=\"ld ex st\"", "from=\"ld ex st\" to=\"ld ex\"",
     "which queue 'st' uses", "<memory id=\"acc\""},
    {DRAFT "board.xml", "<sync id=\"done\" kind=\"token\" from=\"load exec store\"",
     "<sync id=\"done\" kind=\"token\" from=\"vec\"",
     "writes memory 'dram', which queue 'vec' uses", NULL},
    {SHIPPED "cpu-avx512.xml", "threads=\"2\"", "threads=\"0\"", "expected a whole number from 1",
     "threads=\"0\""},
    {SHIPPED "cpu-avx512.xml", "serves=\"DRAM_SERVES/100\"", "serves=\"-1\"",
     "expected a number from 0", "serves=\"-1\""},
    {SHIPPED "cpu-avx512.xml", "<sync id=\"ooo\" kind=\"interlock\" from=\"*\" to=\"*\"/>",
     "<sync id=\"ooo\" kind=\"interlock\" from=\"vld\" to=\"vec\"/>", "no chain of syncs leads",
     NULL},
    {SHIPPED "edge16.xml", "<sync id=\"e2l\" kind=\"token\" from=\"exec\"  to=\"load\"",
     "<sync id=\"e2l\" kind=\"token\" from=\"exec\"", "lacks from or to", "<sync id=\"e2l\""},
    {DRAFT "sm90.xml", "completes=\"cp\"", "completes=\"full\"", "does not come from queue 'lsu'",
     "completes=\"full\">\n          <semantics>kernel cp"},
    {DRAFT "sm90.xml", "id=\"mma.m16n8k16\" queue=\"mma\"", "id=\"mma.m16n8k16\"", "has no queue",
     "id=\"mma.m16n8k16\""},
    {SHIPPED "edge16.xml", "<instruction id=\"mm16\" queue=\"exec\"", "<instruction id=\"mm16\"",
     "instruction 'mm16' has no queue", "<instruction id=\"mm16\""},
    {DRAFT "avx512.xml", "caches=\"dram\"", "caches=\"l1\"", "expected no cycle", NULL},
    {DRAFT "cluster.xml", "from=\"dram\" to=\"dram\" across=\"node\"",
     "from=\"dram\" to=\"dram\" across=\"core\"", "goes across unit 'core'", "across=\"core\""},
};

static const struct defect texts[] = {
    {DRAFT "amx.xml", "${word(D)}, ptr %S", "${wrod(D)}, ptr %S", "'wrod' in ${…}", "${wrod(D)}"},
    {DRAFT "sm90.xml", "\"r\"(${bytes})", "\"r\"(${byte})", "'byte' in ${…}", "${byte}"},
    {DRAFT "amx.xml", "${word(S)}", "${word(S)", "is not closed", "${word(S)"},
    {DRAFT "gemmini.xml", "<emit as=\"bits\"><word format=\"mvout\">",
     "<emit as=\"llvm\"><word format=\"mvout\">", "words in an emit as 'llvm', expected text",
     NULL},
    {DRAFT "blas.xml", "<emit as=\"c\" header", "<emit as=\"bits\" header",
     "text in an emit as 'bits', expected words", NULL},
    {DRAFT "vdla.xml", "each=\"op code expr\"", "each=\"op coda expr\"",
     "nothing replaces '$(code)', expected a 'for' around it",
     "value=\"$(code)\"/>\n        </word"},
    {DRAFT "avx512.xml", "each=\"op sym code\"", "each=\"op sum code\"",
     "nothing replaces '$(sym)'",
     "kernel $(op)() { in A: f32[16]  in B: f32[16]  out C: f32[16]  axes j: 16  C[j] = A[j] "
     "$(sym)"},
    {DRAFT "amx.xml", "tdpbsud i8 u8 i32 4 64", "tdpbsud i8 u8 i32 4",
     "row 2 of 'for' has 5 values, expected 6", "<for each=\"op ta"},
};

static const struct defect structure[] = {
    {SHIPPED "edge16.xml", "<queue id=\"load\"", "<queu id=\"load\"",
     "element 'queu' inside 'machine', expected one of: doc param", "<queu"},
    {DRAFT "vdla.xml", "<loop id=\"outer\"", "<lop id=\"outer\"",
     "element 'lop' inside 'instruction', expected one of: doc semantics operand require need loop "
     "emit",
     "<lop"},
    {SHIPPED "edge16.xml", "word=\"T\"     banks", "wrd=\"T\"     banks",
     "unknown attribute 'wrd' of 'memory', expected one of: id size word", "wrd="},
    {DRAFT "gemmini.xml", "<bus id=\"dma\" rate=\"16\"", "<bus id=\"dma\"",
     "element 'bus' has no attribute 'rate', expected id rate", "<bus id=\"dma\""},
    {SHIPPED "cpu-avx2.xml", "pass=\"value\"", "pass=\"values\"",
     "unknown pass 'values' of 'memory', expected one of: pointer value number", "pass=\"values\""},
    {DRAFT "sm90.xml", "kind=\"group\"", "kind=\"groop\"", "unknown kind 'groop'", "groop"},
    {SHIPPED "edge16.xml", "<memory id=\"inp\"", "<memory id=\"2inp\"", "id '2inp' is no name",
     "2inp"},
    {SHIPPED "cpu-scalar.xml", "priority=\"0\"", "priority=\"high\"", "priority", "<machine"},
    {DRAFT "vdla.xml", "<semantics>kernel ld(X=1..8192)", "<semantix>kernel ld(X=1..8192)",
     "expected well-formed XML", NULL},
    {SHIPPED "edge16.xml", "</machine>", "", "expected well-formed XML", NULL},
    {SHIPPED "edge16.xml", "<machine ", "<!DOCTYPE machine [<!ENTITY a \"b\">]><machine ",
     "a document type declaration, expected none", "<!DOCTYPE"},
    {SHIPPED "edge16.xml", "title=\"", "title=\"&unknown;", "well-formed", NULL},
    {SHIPPED "edge16.xml", "urn:isamap:machine:1", "urn:isamap:machine:2",
     "is of version '2' of the machine format, this isamap reads version 1", "<machine"},
    {SHIPPED "edge16.xml", "  <queue id=\"load\"", "  words <queue id=\"load\"", "text 'words",
     NULL},
    {DRAFT "vdla.xml", "<operand buffer=\"S\"/>  <operand buffer=\"D\"/>",
     "<require test=\"1\"/><operand buffer=\"S\"/>  <operand buffer=\"D\"/>",
     "the order is doc semantics operand require", NULL},
    {SHIPPED "edge16.xml", "size=\"1G\"", "size=\"0\"", "expected a whole number from 1",
     "size=\"0\""},
    {DRAFT "vdla.xml", "word=\"256\"", "word=\"2.5\"", "is 2.5, expected a whole number",
     "word=\"2.5\""},
    {DRAFT "vdla.xml", "size=\"INP\"", "size=\"INP/3\"", "expected a whole number",
     "size=\"INP/3\""},
    {SHIPPED "cpu-avx2.xml", "cpuid=\"7,0,ebx,5\"", "cpuid=\"7,0,ebp,5\"",
     "cpuid '7,0,ebp,5', expected 'leaf,subleaf,register,bit'", "ebp"},
    {SHIPPED "cpu-avx2.xml", "cpuid=\"7,0,ebx,5\"", "permit=\"x\"",
     "cannot be tested for, expected cpuid or capability", NULL},
    {DRAFT "amx.xml", "arch_prctl 0x1023 18", "arch_prctl 0x1002 0",
     "expected 'arch_prctl CODE ARGUMENT'", "0x1002"},
    {DRAFT "vdla.xml", "range=\"4..64\"", "range=\"64..4\"",
     "is empty, expected the smaller end first", "64..4"},
    {DRAFT "vdla.xml", "range=\"4..64\"", "range=\"4-64\"", "expected a range such as 1..8",
     "4-64"},
    {DRAFT "vdla.xml", "range=\"4..64\"", "range=\"4..sixty\"", "'sixty' has no value here",
     "sixty"},
    {DRAFT "vdla.xml", "X=1..8192", "X=9..1", "size 'X' of 'ld.uop' has no value here",
     "kernel ld(|X=9..1"},
    {DRAFT "vdla.xml", "X=1..8192", "X=-9223372036854775808..8192",
     "size 'X' of 'ld.uop' has no value here", "kernel ld(|X=-9"},
    {DRAFT "vdla.xml", "X=1..8192", "X=1..281474976710657",
     "size 'X' of 'ld.uop' has no value here", "kernel ld(|X=1..2"},
    {DRAFT "gemmini.xml", "B=1..4)", "B=1..BB)", "size 'B' of 'mvin.spad' has no value here",
     "R=1..16, |B=1..BB"},
    {DRAFT "board.xml", "href=\"vdla.xml\"", "href=\"vdlx.xml\"", "cannot read 'vdlx.xml'", "vdlx"},
    {DRAFT "board.xml", "href=\"vdla.xml\"", "href=\"board.xml\"", "'board.xml' includes itself",
     "board.xml\""},
    {DRAFT "board.xml", "share=\"dram\"", "share=\"ddr\"", "no element 'ddr' to share",
     "share=\"ddr\""},
    {DRAFT "board.xml", "share=\"dram\"", "share=\"dram inp\"",
     "nothing outside has the id 'inp' to share", "dram inp"},
    {DRAFT "board.xml", " share=\"dram\"", "", "memory 'dram' is defined twice", NULL},
    {DRAFT "blas.xml", "<unit id=\"core\">", "<remove id=\"nobody\"/><unit id=\"core\">",
     "nothing to remove with id 'nobody'", "<remove"},
};

struct fixture {
    struct arena arena;
    struct diags diags;
};

static void place_of(const char *text, const char *marker, int *line, int *col) {
    char plain[200];
    const char *bar = strchr(marker, '|');
    size_t before = bar ? (size_t)(bar - marker) : 0;
    snprintf(plain, sizeof plain, "%.*s%s", (int)before, marker, bar ? bar + 1 : marker);
    const char *at = strstr(text, plain);
    if (!at) fail_msg("marker '%s' is not in the file", plain);
    *line = *col = 1;
    for (const char *p = text; p < at + before; p++) {
        ++*col;
        if (*p == '\n') ++*line, *col = 1;
    }
    if (!bar) *col = 0;
}

static bool found(const struct defect *c, const char *text, const struct diags *d) {
    int line = 0, col = 0;
    if (c->at) place_of(text, c->at, &line, &col);
    for (int i = 0; i < d->n; i++) {
        const struct diag *g = &d->at[i];
        if (g->warning || !g->file || !strstr(g->text, c->says)) continue;
        if (c->at && (g->line != line || strcmp(g->file, c->file))) continue;
        if (col && g->col != col) continue;
        return true;
    }
    return false;
}

static void try_defect(const struct defect *c) {
    struct fixture f;
    struct text edited = {0};
    size_t length;
    arena_init(&f.arena);
    diags_init(&f.diags);
    const char *text = file_read(&f.arena, c->file, 1 << 20, &length, &f.diags);
    assert_non_null(text);
    const char *at = strstr(text, c->old);
    if (!at) fail_msg("%s has no '%s'", c->file, c->old);
    text_append(&edited, text, (size_t)(at - text));
    text_append(&edited, c->new, strlen(c->new));
    text_append(&edited, at + strlen(c->old), strlen(at + strlen(c->old)));
    struct machine *m = machine_parse(c->file, edited.at, edited.n, NULL, &f.diags);
    assert_null(m);
    if (!f.diags.errors || !found(c, edited.at, &f.diags)) {
        diags_print(&f.diags, stderr);
        fail_msg("%s: '%s' -> '%s': expected '%s' at '%s'", c->file, c->old, c->new, c->says,
                 c->at ? c->at : "anywhere");
    }
    text_free(&edited);
    diags_free(&f.diags);
    arena_free(&f.arena);
}

#define SENTENCE(table)                                                                            \
    static void table##_defects(void **state) {                                                    \
        (void)state;                                                                               \
        for (size_t i = 0; i < sizeof table / sizeof *table; i++) try_defect(&table[i]);           \
    }
SENTENCE(names)
SENTENCE(operands)
SENTENCE(layouts)
SENTENCE(bits)
SENTENCE(states)
SENTENCE(chains)
SENTENCE(texts)
SENTENCE(structure)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_defects),   cmocka_unit_test(operands_defects),
        cmocka_unit_test(layouts_defects), cmocka_unit_test(bits_defects),
        cmocka_unit_test(states_defects),  cmocka_unit_test(chains_defects),
        cmocka_unit_test(texts_defects),   cmocka_unit_test(structure_defects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
