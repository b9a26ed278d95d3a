// Copies boxes of words from DRAM into buffers, with zeros around them. Two halves: one asks the port for a copy after the
// other; the other, `latency` cycles behind, writes what comes, a word a cycle at most, with padding in cycles in
// which no word has come. Nothing overtakes anything. With BLOCKING the next instruction starts only when all is written.
module dma_read
  import vdla_types::*;
#(
    parameter bit BLOCKING = 0
) (
    input  logic                     clk,
    input  logic                     rst,
    input  cycle_t                   now,
    input  logic              [31:0] rate,
    // an instruction; idle: one may start in this cycle
    output logic                     idle,
    input  logic                     start,
    input  vdla_pkg::ld_inp_t        copy,
    input  logic              [31:0] number,
    output retire_t                  retire,
    // the port
    output request_t                 request,
    input  logic                     granted,
    input  logic              [31:0] latency,
    // DRAM: data follow in the next cycle, and go to the buffers as they come
    output logic                     read,
    output logic              [31:0] read_address,
    output logic              [31:0] read_bytes,
    output logic                     write,          // in that next cycle:
    output logic                     write_zero,
    output logic              [ 2:0] write_kind,
    output logic              [31:0] write_at,       // word of the buffer
    // tokens of instructions that are done; `carry`: of one that moves nothing, given with the copies before it
    input  tokens_t                  carry,
    output tokens_t                  give,
    output logic                     flying,
    output logic                     fault
);
  // ---- asking ----
  typedef enum logic [1:0] {IDLE, ASK, MOVE, WAIT} phase_t;
  phase_t phase;
  vdla_pkg::ld_inp_t ours;
  cycle_t since;
  logic [31:0] our_number;
  logic issued;

  extent_t extent;
  logic last_moved;
  wire moving = (phase == ASK && granted) || phase == MOVE;
  occupancy asked (
      .clk, .load(start), .copy, .size(copy_word(copy.kind)), .row(copy.kind == vdla_pkg::LD_ROW__KIND), .go(moving), .rate,
      .all(extent), .last(last_moved)
  );
  assign issued  = phase == ASK && granted;
  assign idle    = phase == IDLE;
  assign request = '{valid: phase == ASK, since: since, number: our_number, bytes: extent.bytes};

  logic free;
  assign free = BLOCKING ? phase == WAIT && wrote_last : moving && last_moved;
  assign retire = '{valid: free, number: our_number, start: since, finish: now + 1};

  always_ff @(posedge clk) begin
    if (start) begin
      phase <= ASK;
      ours <= copy;
      our_number <= number;
      since <= now;
    end
    else if (free) phase <= IDLE;
    else if (moving) phase <= last_moved ? WAIT : MOVE;
    if (rst) phase <= IDLE;
  end

  // ---- what is under way ----
  typedef struct packed {
    cycle_t            ready;  // the first cycle of its arrival
    extent_t           all;
    vdla_pkg::ld_inp_t copy;
  } flight_t;
  flight_t flight[FLIGHT];
  tokens_t owed[FLIGHT];  // later instructions may add theirs
  logic [$clog2(FLIGHT)-1:0] first, next;
  logic [$clog2(FLIGHT):0] count;
  logic finish, wrote_last;
  tokens_t last_give;
  wire tokens_t own = '{prev: 8'(ours.push_prev), next: 8'(ours.push_next)};
  wire alone = count == 0, leaves = count == 1 && finish;

  function automatic tokens_t both(input tokens_t a, input tokens_t b);
    return '{prev: a.prev + b.prev, next: a.next + b.next};
  endfunction

  assign give   = both(wrote_last ? last_give : '0, alone ? carry : '0);
  assign flying = count != 0 || wrote_last || phase != IDLE;

  always_ff @(posedge clk) begin
    if (issued) begin
      flight[next] <= '{ready: now + cycle_t'(latency) - 1, all: extent, copy: ours};
      owed[next] <= own;
      next <= next + 1'b1;
    end
    else if (!alone && !leaves) owed[next-1'b1] <= both(owed[next-1'b1], carry);
    if (finish) begin
      first <= first + 1'b1;
      last_give <= both(owed[first], leaves ? carry : '0);
    end
    wrote_last <= finish;
    count <= count + ($clog2(FLIGHT) + 1)'(issued) - ($clog2(FLIGHT) + 1)'(finish);
    fault <= fault || (issued && count == ($clog2(FLIGHT) + 1)'(FLIGHT));
    if (rst) begin
      {first, next, count} <= '0;
      wrote_last <= 1'b0;
      fault <= 1'b0;
    end
  end

  // ---- writing ----
  // The oldest copy's place in its box stands in registers.
  logic active, row;
  cycle_t ready;
  logic [2:0] kind;
  logic [12:0] base;
  logic [31:0] size, origin, credit, to_come, words_left, pads_left, fills_left, place, source, pad, filled;
  wire loading = (!active && count != 0) || (finish && count > 1);
  flight_t chosen;
  always_comb if (loading) chosen = flight[active?first+1'b1 : first]; else chosen = '0;
  wire [31:0] arrived = credit + (to_come < rate ? to_come : rate);
  wire go = active && now >= ready;
  wire take_data = go && words_left != 0 && arrived >= size;
  wire take_pad = go && !take_data && pads_left != 0;
  wire fill = go && row && (take_data || words_left == 0);
  assign finish = go && words_left == 32'(take_data) && pads_left == 32'(take_pad) && fills_left == 32'(fill);

  walk walker (
      .clk, .load(loading), .box(chosen.copy), .take_data, .take_pad, .data_place(place), .data_source(source), .pad_place(pad)
  );

  assign read         = take_data;
  always_comb if (take_data) read_address = origin + source * size; else read_address = '0;
  assign read_bytes   = size;

  always_ff @(posedge clk) begin
    write      <= take_data || take_pad || fill;
    write_zero <= take_pad;
    write_kind <= kind;
    write_at   <= 32'(base) + (row ? filled : take_pad ? pad : place);
    if (go) begin
      credit <= arrived - (take_data ? size : 0);
      to_come <= to_come < rate ? '0 : to_come - rate;
      words_left <= words_left - 32'(take_data);
      pads_left <= pads_left - 32'(take_pad);
      fills_left <= fills_left - 32'(fill);
      filled <= filled + 32'(fill);
    end
    if (finish) active <= 1'b0;
    if (loading) begin
      active <= 1'b1;
      ready <= chosen.ready;
      kind <= chosen.copy.kind;
      size <= copy_word(chosen.copy.kind);
      row <= chosen.all.row;
      base <= chosen.copy.sram;
      origin <= {2'b00, chosen.copy.dram, 4'h0};
      credit <= '0;
      to_come <= chosen.all.bytes;
      words_left <= chosen.all.words;
      pads_left <= chosen.all.row ? '0 : chosen.all.places - chosen.all.words;
      fills_left <= !chosen.all.row ? '0 : chosen.all.places == 0 ? 1 : chosen.all.places;
      filled <= '0;
    end
    if (rst) begin
      active <= 1'b0;
      write  <= 1'b0;
    end
  end
endmodule
