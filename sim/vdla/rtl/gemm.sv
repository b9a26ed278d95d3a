// 256 products a cycle: each of 16 accumulators adds a row of 16 weights times 16 inputs. Gated by `valid`, and the products of a
// row in one function: this is what the time of a simulation goes into.
module gemm
  import vdla_types::*;
(
    input  logic                valid,
    input  logic                overwrite,
    input  logic [INP_BITS-1:0] inp,
    input  logic [WGT_BITS-1:0] wgt,
    input  logic [ACC_BITS-1:0] old,
    output logic [ACC_BITS-1:0] sum
);
  function automatic logic [31:0] row(input logic [INP_BITS-1:0] a, input logic [INP_BITS-1:0] b);
    // verilator no_inline_task
    logic [31:0] s;
    s = '0;
    for (int k = 0; k < 16; k++) s = s + 32'($signed(a[8*k+:8])) * 32'($signed(b[8*k+:8]));
    return s;
  endfunction

  always_comb begin
    sum = '0;
    if (valid)
      for (int j = 0; j < 16; j++) sum[32*j+:32] = (overwrite ? 32'd0 : old[32*j+:32]) + row(inp, wgt[INP_BITS*j+:INP_BITS]);
  end
endmodule
