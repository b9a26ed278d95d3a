// The one port to DRAM, which moves `rate` bytes a cycle. First come, first served; of requests of one cycle the
// instruction that was fetched first. A copy has the port until its last byte; what it asked for comes `latency`
// cycles later (or is written then), while others have the port. The latency is the same for all, or random.
module port
  import vdla_types::*;
(
    input  logic            clk,
    input  logic            rst,
    input  logic     [31:0] rate,
    input  logic     [31:0] low,      // latency from low to high
    input  logic     [31:0] high,
    input  logic     [63:0] seed,     // not 0
    input  request_t        request[3],
    output logic     [ 2:0] granted,
    output logic     [31:0] latency,
    output logic            busy
);
  logic [31:0] left;
  logic [63:0] state, drawn;

  function automatic logic older(input request_t a, input request_t b);
    return a.since < b.since || (a.since == b.since && a.number < b.number);
  endfunction

  always_comb begin  // xorshift64 (Marsaglia 2003)
    drawn = state ^ (state << 13);
    drawn = drawn ^ (drawn >> 7);
    drawn = drawn ^ (drawn << 17);
    latency = low == high ? low : low + drawn[63:32] % (high - low + 1);
  end

  always_comb begin
    granted = 3'b000;
    if (left == 0)
      for (int a = 0; a < 3; a++) begin
        granted[a] = request[a].valid;
        for (int b = 0; b < 3; b++)
          if (b != a && request[b].valid && older(request[b], request[a])) granted[a] = 1'b0;
      end
  end
  assign busy = left != 0 || granted != 0;

  always_ff @(posedge clk) begin
    if (left != 0) left <= left > rate ? left - rate : '0;
    for (int a = 0; a < 3; a++)
      if (granted[a]) left <= request[a].bytes > rate ? request[a].bytes - rate : '0;
    if (granted != 0) state <= drawn;
    if (rst) begin
      left  <= '0;
      state <= seed;
    end
  end
endmodule
