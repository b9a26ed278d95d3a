// A queue: what is pushed in one cycle can be popped in the next; there is room in the cycle of a pop.
module fifo #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 16
) (
    input  logic             clk,
    input  logic             rst,
    input  logic             push,
    input  logic [WIDTH-1:0] in,
    input  logic             pop,
    output logic [WIDTH-1:0] out,
    output logic             empty,
    output logic             room
);
  localparam int INDEX = DEPTH > 1 ? $clog2(DEPTH) : 1;
  logic [WIDTH-1:0] mem[DEPTH];
  logic [INDEX-1:0] head, tail;
  logic [INDEX:0] count;

  function automatic logic [INDEX-1:0] after(input logic [INDEX-1:0] at);
    return at == INDEX'(DEPTH - 1) ? '0 : at + 1'b1;
  endfunction

  assign out   = mem[head];
  assign empty = count == 0;
  assign room  = count != (INDEX + 1)'(DEPTH) || pop;

  always_ff @(posedge clk) begin
    if (push) begin
      mem[tail] <= in;
      tail <= after(tail);
    end
    if (pop) head <= after(head);
    count <= count + (INDEX + 1)'(push) - (INDEX + 1)'(pop);
    if (rst) begin
      head  <= '0;
      tail  <= '0;
      count <= '0;
    end
    else begin
      assert (!pop || !empty);
      assert (!push || room);
    end
  end
endmodule
