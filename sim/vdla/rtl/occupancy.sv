// What a copy needs of the port and of a buffer, and how long it takes once it has the port: until the last byte has passed, and
// at least a cycle for each word that is written (padding too) or read. A row that fills many words begins to write when it
// has passed.
module occupancy
  import vdla_types::*;
(
    input  logic               clk,
    input  logic               load,    // this copy follows
    input  vdla_pkg::ld_inp_t  copy,
    input  logic        [31:0] size,    // of a word in DRAM
    input  logic               row,
    input  logic               go,      // one cycle of it
    input  logic        [31:0] rate,
    output extent_t            all,     // of the copy
    output logic               last     // this is its last cycle
);
  logic [31:0] bytes_left, places_left;
  assign last = bytes_left <= rate && places_left <= 1;

  always_ff @(posedge clk) begin
    if (go) begin
      bytes_left <= bytes_left > rate ? bytes_left - rate : '0;
      if (places_left != 0 && (!all.row || bytes_left <= rate)) places_left <= places_left - 1;
    end
    if (load) begin
      automatic logic [31:0] words = row ? 1 : 32'(copy.z) * 32'(copy.y) * 32'(copy.x);
      automatic logic [31:0] places = row ? 32'(copy.y)
          : 32'(copy.z) * (32'(copy.y0) + 32'(copy.y) + 32'(copy.y1)) * (32'(copy.x0) + 32'(copy.x) + 32'(copy.x1));
      bytes_left <= words * size;
      places_left <= places;
      all <= '{row: row, words: words, places: places, bytes: words * size};
    end
  end
endmodule
