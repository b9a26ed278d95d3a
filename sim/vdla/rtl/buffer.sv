// A memory on the chip: one word is written, and one read (in the same cycle) a cycle. What is not asked for is anything.
module buffer #(
    parameter int WIDTH = 8,
    parameter int WORDS = 16
) (
    input  logic                     clk,
    input  logic                     write,
    input  logic [$clog2(WORDS)-1:0] write_at,
    input  logic [        WIDTH-1:0] write_data,
    input  logic                     write_zero,
    input  logic [$clog2(WORDS)-1:0] read_at,
    output logic [        WIDTH-1:0] read_data
);
  logic [WIDTH-1:0] mem[WORDS];
  assign read_data = mem[read_at];
  always_ff @(posedge clk) if (write) mem[write_at] <= write_zero ? '0 : write_data;
endmodule
