// The register file: an accumulator is read, computed with and written in one cycle; another may be loaded, another stored.
module accumulators
  import vdla_types::*;
(
    input  logic                 clk,
    input  logic                 load,
    input  logic [ACC_INDEX-1:0] load_at,
    input  logic [ ACC_BITS-1:0] load_data,
    input  logic                 read,
    input  logic [ACC_INDEX-1:0] read_c,
    input  logic [ACC_INDEX-1:0] read_x,
    output logic [ ACC_BITS-1:0] c,
    output logic [ ACC_BITS-1:0] x,
    input  logic [ ACC_BITS-1:0] result,      // goes back to c
    input  logic                 store,
    input  logic [ACC_INDEX-1:0] store_at,
    output logic [ ACC_BITS-1:0] store_data
);
  logic [ACC_BITS-1:0] mem[vdla_pkg::MEMORY_ACC_WORDS];
  always_comb begin
    c = '0;
    x = '0;
    store_data = '0;
    if (read) begin
      c = mem[read_c];
      x = mem[read_x];
    end
    if (store) store_data = mem[store_at];
  end
  always_ff @(posedge clk) begin
    if (load) mem[load_at] <= load_data;
    if (read) mem[read_c] <= result;
  end
endmodule
