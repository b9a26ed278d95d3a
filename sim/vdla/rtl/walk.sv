// The order in which a copy touches words: plane by plane, row by row. `data` counts the words that have a source,
// `pad` those that are zero. Both are places in the padded box, and in DRAM.
module walk
  import vdla_types::*;
(
    input  logic                   clk,
    input  logic                   load,         // a new box: places are its first ones in the next cycle
    input  vdla_pkg::ld_inp_t      box,
    input  logic                   take_data,
    input  logic                   take_pad,
    output logic            [31:0] data_place,   // word in the buffer, from the box's first
    output logic            [31:0] data_source,  // word in DRAM, from the box's first
    output logic            [31:0] pad_place
);
  vdla_pkg::ld_inp_t b;
  logic [31:0] dx, dy, row_place, row_source, plane_source, px, py, pz;
  wire [31:0] width = 32'(b.x0) + 32'(b.x) + 32'(b.x1), height = 32'(b.y0) + 32'(b.y) + 32'(b.y1);

  // The first word of padding in row y or after it; a row behind the last is the next plane's business.
  function automatic logic [63:0] first_pad(input vdla_pkg::ld_inp_t o, input logic [31:0] y);
    logic inside_rows;
    inside_rows = y >= 32'(o.y0) && y < 32'(o.y0) + 32'(o.y);
    if (!inside_rows || o.x0 != 0) return {y, 32'd0};
    if (o.x1 != 0) return {y, 32'(o.x)};
    return {32'(o.y0) + 32'(o.y), 32'd0};
  endfunction

  wire         inside_rows = py >= 32'(b.y0) && py < 32'(b.y0) + 32'(b.y);
  wire  [31:0] right = inside_rows && px + 1 == 32'(b.x0) ? 32'(b.x0) + 32'(b.x) : px + 1;
  logic [63:0] below;
  always_comb begin
    below = '0;
    pad_place = '0;
    if (take_pad) begin
      pad_place = (pz * height + py) * width + px;
      below = first_pad(b, py + 1);
      if (below[63:32] >= height) below = first_pad(b, 0);
    end
  end

  assign data_place  = row_place + dx;
  assign data_source = row_source + dx;

  always_ff @(posedge clk) begin
    if (take_data) begin
      dx <= dx + 1;
      if (dx + 1 == 32'(b.x)) begin
        dx <= '0;
        dy <= dy + 1;
        row_place <= row_place + width;
        row_source <= row_source + 32'(b.ys);
        if (dy + 1 == 32'(b.y)) begin
          dy <= '0;
          row_place <= row_place + width * (1 + 32'(b.y0) + 32'(b.y1));
          row_source <= plane_source + 32'(b.zs);
          plane_source <= plane_source + 32'(b.zs);
        end
      end
    end
    if (take_pad) begin
      px <= right;
      if (right >= width) begin
        py <= below[63:32];
        px <= below[31:0];
        if (below[63:32] <= py) pz <= pz + 1;
      end
    end
    if (load) begin
      b <= box;
      dx <= '0;
      dy <= '0;
      row_place <= 32'(box.y0) * (32'(box.x0) + 32'(box.x) + 32'(box.x1)) + 32'(box.x0);
      row_source <= '0;
      plane_source <= '0;
      {py, px} <= first_pad(box, 0);
      pz <= '0;
    end
  end
endmodule
