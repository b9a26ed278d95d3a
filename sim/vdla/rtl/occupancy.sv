// How long a copy takes once it has the port: until the last byte has passed, and at least a cycle for each word that is
// written (padding too) or read. A row that fills many words begins to write when it has passed.
module occupancy (
    input  logic        clk,
    input  logic        load,       // a copy with these follows
    input  logic [31:0] bytes,
    input  logic [31:0] words,
    input  logic        row,
    input  logic        go,         // one cycle of it
    input  logic [31:0] rate,
    output logic        last        // this is its last cycle
);
  logic [31:0] bytes_left, words_left;
  logic        fills;
  assign last = bytes_left <= rate && words_left <= 1;

  always_ff @(posedge clk) begin
    if (go) begin
      bytes_left <= bytes_left > rate ? bytes_left - rate : '0;
      if (words_left != 0 && (!fills || bytes_left <= rate)) words_left <= words_left - 1;
    end
    if (load) begin
      bytes_left <= bytes;
      words_left <= words;
      fills <= row;
    end
  end
endmodule
