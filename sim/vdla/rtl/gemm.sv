// The matrix unit and its two buffers: 256 products a cycle, each of 16 accumulators adds a row of 16 weights times 16 inputs. The
// numbers are kept as 32 bits, and weights by input, so that a simulation does them 8 at a time: it spends its time here.
module gemm
  import vdla_types::*;
(
    input  logic                 clk,
    input  logic                 load_inp,
    input  logic [INP_INDEX-1:0] load_inp_at,
    input  logic                 load_wgt,
    input  logic [WGT_INDEX-1:0] load_wgt_at,
    input  logic [ WGT_BITS-1:0] load_data,
    input  logic                 load_zero,   // instead of the data
    input  logic                 valid,
    input  logic                 overwrite,
    input  logic [INP_INDEX-1:0] inp_at,
    input  logic [WGT_INDEX-1:0] wgt_at,
    input  logic [ ACC_BITS-1:0] old,
    output logic [ ACC_BITS-1:0] sum
);
  typedef int inputs_t[16];
  typedef int weights_t[16][16];  // of each input to all outputs
  inputs_t inp[vdla_pkg::MEMORY_INP_WORDS];
  weights_t wgt[vdla_pkg::MEMORY_WGT_WORDS];

  function automatic void add_products(input logic [ACC_BITS-1:0] to, const ref inputs_t x, const ref weights_t w,
                                       output logic [ACC_BITS-1:0] result);
    // verilator no_inline_task
    inputs_t o;
    for (int j = 0; j < 16; j++) o[j] = to[32*j+:32];
    for (int k = 0; k < 16; k++) for (int j = 0; j < 16; j++) o[j] = o[j] + x[k] * w[k][j];
    for (int j = 0; j < 16; j++) result[32*j+:32] = o[j];
  endfunction

  function automatic weights_t widened(input logic [WGT_BITS-1:0] data, input logic zero);
    // verilator no_inline_task
    for (int k = 0; k < 16; k++)
      for (int j = 0; j < 16; j++) widened[k][j] = zero ? 0 : 32'($signed(data[8*(16*j+k)+:8]));
  endfunction

  always_ff @(posedge clk) begin
    if (load_inp) begin
      automatic inputs_t loaded_inp;
      for (int k = 0; k < 16; k++) loaded_inp[k] = load_zero ? 0 : 32'($signed(load_data[8*k+:8]));
      inp[load_inp_at] <= loaded_inp;
    end
    if (load_wgt) wgt[load_wgt_at] <= widened(load_data, load_zero);
  end

  always_comb begin
    sum = '0;
    if (valid) add_products(overwrite ? '0 : old, inp[inp_at], wgt[wgt_at], sum);
  end
endmodule
