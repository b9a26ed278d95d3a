// Copies boxes of accumulators to DRAM, as they are or narrowed to a byte. One half asks the port for a copy after the other and
// reads a word a cycle at most while it has the port; the other writes them `latency` cycles later. Narrowing: times
// a power of two, rounded half to even, saturated to the bounds that the instruction gives.
module dma_write
  import vdla_types::*;
(
    input  logic                    clk,
    input  logic                    rst,
    input  cycle_t                  now,
    input  logic             [31:0] rate,
    output logic                    idle,
    input  logic                    start,
    input  vdla_pkg::st_t           copy,
    input  logic             [31:0] number,
    output retire_t                 retire,
    output request_t                request,
    input  logic                    granted,
    input  logic             [31:0] latency,
    // the accumulators: a word, in the same cycle
    output logic                    read,
    output logic             [31:0] read_at,
    input  logic     [ACC_BITS-1:0] read_data,
    // DRAM
    output logic                    write,
    output logic             [31:0] write_address,
    output logic             [31:0] write_bytes,
    output logic     [ACC_BITS-1:0] write_data,
    input  tokens_t                 carry,
    output tokens_t                 give,
    output logic                    flying,
    output logic                    fault
);
  localparam int STORED = 2048;  // words under way
  typedef enum logic [1:0] {IDLE, ASK, MOVE} phase_t;
  phase_t phase;
  vdla_pkg::st_t ours;
  cycle_t since;
  logic [31:0] our_number;

  wire is_narrow = copy.kind == vdla_pkg::ST__KIND;

  // ---- asking and reading ----
  logic last_moved, fetched;
  wire issued = phase == ASK && granted;
  wire moving = issued || phase == MOVE;
  wire free = moving && last_moved;
  logic [31:0] have, to_read, at;
  extent_t extent;
  logic [31:0] size_asked;
  logic narrows;
  wire [31:0] could = have + rate;
  assign fetched = moving && to_read != 0 && could >= size_asked;

  vdla_pkg::ld_inp_t plain;  // the same box, as a copy without padding
  always_comb begin
    plain = copy;
    {plain.y0, plain.y1, plain.x0, plain.x1} = '0;
  end
  occupancy asked (
      .clk, .load(start), .copy(plain), .size(is_narrow ? 16 : 64), .row(1'b0), .go(moving), .rate, .all(extent), .last(last_moved)
  );
  assign idle    = phase == IDLE;
  assign request = '{valid: phase == ASK, since: since, number: our_number, bytes: extent.bytes};
  assign retire  = '{valid: free, number: our_number, start: since, finish: now + 1};
  assign read    = fetched;
  assign read_at = at;

  always_ff @(posedge clk) begin
    if (start) begin
      phase <= ASK;
      ours <= copy;
      our_number <= number;
      since <= now;
      have <= '0;
      size_asked <= is_narrow ? 16 : 64;
      narrows <= is_narrow;
      to_read <= 32'(copy.z) * 32'(copy.y) * 32'(copy.x);
      at <= 32'(copy.sram);
    end
    else if (free) phase <= IDLE;
    else if (moving) phase <= MOVE;
    if (moving) have <= could - (fetched ? size_asked : 0);
    if (fetched) begin
      to_read <= to_read - 1;
      at <= at + 1;
    end
    if (rst) phase <= IDLE;
  end

  // ---- narrowing ----
  function automatic logic [7:0] narrow(input logic signed [31:0] v, input logic [4:0] shift, input logic signed [7:0] low,
                                        input logic signed [7:0] high);
    logic signed [31:0] whole;
    logic [31:0] rest, half;
    whole = v >>> shift;
    rest = v & ~(32'hffff_ffff << shift);
    half = shift == 0 ? '0 : 32'd1 << (shift - 1);
    if (shift != 0 && (rest > half || (rest == half && whole[0]))) whole = whole + 1;
    if (whole < 32'(low)) whole = 32'(low);
    if (whole > 32'(high)) whole = 32'(high);
    return whole[7:0];
  endfunction

  logic [ACC_BITS-1:0] stored[STORED];
  logic [$clog2(STORED)-1:0] put, taken;
  logic [ACC_BITS-1:0] stored_word;
  always_comb begin
    stored_word = '0;
    if (fetched) begin
      stored_word = read_data;
      if (narrows) for (int j = 0; j < 16; j++) stored_word[8*j+:8] = narrow(read_data[32*j+:32], ours.shift, ours.low, ours.high);
    end
  end
  always_ff @(posedge clk) begin
    if (fetched) begin
      stored[put] <= stored_word;
      put <= put + 1'b1;
    end
    if (rst) put <= '0;
  end

  // ---- what is under way ----
  typedef struct packed {
    cycle_t            ready;
    extent_t           all;
    logic       [31:0] size;
    vdla_pkg::ld_inp_t copy;
  } flight_t;
  flight_t flight[FLIGHT];
  tokens_t owed[FLIGHT];
  logic [$clog2(FLIGHT)-1:0] first, next;
  logic [$clog2(FLIGHT):0] count;
  logic finish;
  wire tokens_t own = '{prev: 8'(ours.push_prev), next: 8'(ours.push_next)};
  wire alone = count == 0, leaves = count == 1 && finish;

  function automatic tokens_t both(input tokens_t a, input tokens_t b);
    return '{prev: a.prev + b.prev, next: a.next + b.next};
  endfunction

  assign give   = both(finish ? owed[first] : '0, alone || leaves ? carry : '0);
  assign flying = count != 0 || phase != IDLE;

  always_ff @(posedge clk) begin
    if (issued) begin
      flight[next] <= '{ready: now + cycle_t'(latency), all: extent, size: size_asked, copy: unpadded};
      owed[next] <= own;
      next <= next + 1'b1;
    end
    else if (!alone && !leaves) owed[next-1'b1] <= both(owed[next-1'b1], carry);
    if (finish) first <= first + 1'b1;
    count <= count + ($clog2(FLIGHT) + 1)'(issued) - ($clog2(FLIGHT) + 1)'(finish);
    fault <= fault || (issued && count == ($clog2(FLIGHT) + 1)'(FLIGHT));
    if (rst) begin
      {first, next, count} <= '0;
      fault <= 1'b0;
    end
  end

  // ---- writing ----
  logic active;
  cycle_t ready;
  logic [31:0] size, origin, credit, to_come, words_left, place, source, pad;
  wire loading = (!active && count != 0) || (finish && count > 1);
  vdla_pkg::ld_inp_t unpadded;
  flight_t chosen;
  always_comb begin
    unpadded = ours;
    {unpadded.y0, unpadded.y1, unpadded.x0, unpadded.x1} = '0;
    if (loading) chosen = flight[active?first+1'b1 : first]; else chosen = '0;
  end
  wire [31:0] arrived = credit + (to_come < rate ? to_come : rate);
  wire go = active && now >= ready;
  wire take = go && words_left != 0 && arrived >= size;
  assign finish = go && words_left == 32'(take);

  walk walker (
      .clk, .load(loading), .box(chosen.copy), .take_data(take), .take_pad(1'b0), .data_place(place), .data_source(source), .pad_place(pad)
  );
  wire unused = &{1'b0, place, pad};

  assign write         = take;
  always_comb if (take) write_address = origin + source * size; else write_address = '0;
  assign write_bytes   = size;
  always_comb if (take) write_data = stored[taken]; else write_data = '0;

  always_ff @(posedge clk) begin
    if (take) taken <= taken + 1'b1;
    if (go) begin
      credit <= arrived - (take ? size : 0);
      to_come <= to_come < rate ? '0 : to_come - rate;
      words_left <= words_left - 32'(take);
    end
    if (finish) active <= 1'b0;
    if (loading) begin
      active <= 1'b1;
      ready <= chosen.ready;
      size <= chosen.size;
      origin <= {2'b00, chosen.copy.dram, 4'h0};
      credit <= '0;
      to_come <= chosen.all.bytes;
      words_left <= chosen.all.words;
    end
    if (rst) begin
      active <= 1'b0;
      taken  <= '0;
    end
  end
endmodule
