// The accelerator: a stream of instructions is fetched from DRAM into three queues, which run decoupled and are kept in order
// by tokens. `done` when everything has left it; `stuck` when nothing can happen any more.
module vdla
  import vdla_types::*;
(
    input  logic          clk,
    input  logic          reset,
    // how it is set up, read while in reset
    input  logic   [63:0] set_handle,      // of the simulator's DRAM
    input  logic   [63:0] set_program,     // address of the instructions
    input  logic   [31:0] set_length,      // how many
    input  logic   [31:0] set_rate,        // bytes a cycle
    input  logic   [31:0] set_low,         // latency
    input  logic   [31:0] set_high,
    input  logic   [63:0] seed,
    output logic          done,
    output logic          stuck,
    output fault_t        fault,
    output cycle_t        now,
    output logic   [ 3:0] missing,         // which token the heads of the queues wait for: s2c, c2s, c2l, l2c
    output logic   [31:0] waiting[3],      // numbers of the heads
    output logic   [ 2:0] empty,
    output logic   [63:0] counter[COUNTERS]
);
  localparam int LOAD = 0, EXEC = 1, STORE = 2;

  logic running, rst;
  logic [31:0] rate, latency_low, latency_high, length;
  logic [63:0] program_address, handle;
  always_ff @(posedge clk) begin
    rst <= reset;
    running <= !rst;
    now <= running ? now + 1 : '0;
    if (rst) now <= '0;
    if (reset) begin
      rate <= set_rate;
      latency_low <= set_low;
      latency_high <= set_high;
      length <= set_length;
      program_address <= set_program;
      handle <= set_handle;
    end
  end

  // ---- fetch and queues ----
  logic [31:0] fetch_number;
  word_t       fetched;
  logic [2:0] room, push, start, idle;
  entry_t entry, head[3];
  logic fetch_done, fetch_fault;
  fetch fetcher (
      .clk, .rst, .length, .number(fetch_number), .word(fetched), .room, .push, .entry, .done(fetch_done), .fault(fetch_fault)
  );
  fifo #(.WIDTH($bits(entry_t)), .DEPTH(vdla_pkg::QUEUE_LOAD_DEPTH)) load_queue (
      .clk, .rst, .push(push[LOAD]), .in(entry), .pop(start[LOAD]), .out(head[LOAD]), .empty(empty[LOAD]), .room(room[LOAD])
  );
  fifo #(.WIDTH($bits(entry_t)), .DEPTH(vdla_pkg::QUEUE_EXEC_DEPTH)) exec_queue (
      .clk, .rst, .push(push[EXEC]), .in(entry), .pop(start[EXEC]), .out(head[EXEC]), .empty(empty[EXEC]), .room(room[EXEC])
  );
  fifo #(.WIDTH($bits(entry_t)), .DEPTH(vdla_pkg::QUEUE_STORE_DEPTH)) store_queue (
      .clk, .rst, .push(push[STORE]), .in(entry), .pop(start[STORE]), .out(head[STORE]), .empty(empty[STORE]), .room(room[STORE])
  );

  // ---- tokens ----
  tokens_t load_gives, exec_copies, exec_runs, store_gives;
  logic l2c, c2l, c2s, s2c;
  logic [3:0] token_fault;
  logic [2:0] wants_prev, wants_next, has_tokens, ready;
  always_comb
    for (int q = 0; q < 3; q++) begin
      wants_prev[q] = !empty[q] && head[q].word[vdla_pkg::HEAD__POP_PREV_AT];
      wants_next[q] = !empty[q] && head[q].word[vdla_pkg::HEAD__POP_NEXT_AT];
      waiting[q] = head[q].number;
    end
  tokens #(.MOST(vdla_pkg::SYNC_L2C_DEPTH)) from_load (
      .clk, .rst, .give(load_gives.next), .take(start[EXEC] && wants_prev[EXEC]), .there(l2c), .fault(token_fault[0])
  );
  tokens #(.MOST(vdla_pkg::SYNC_C2L_DEPTH)) to_load (
      .clk, .rst, .give(exec_copies.prev + exec_runs.prev), .take(start[LOAD] && wants_next[LOAD]), .there(c2l), .fault(token_fault[1])
  );
  tokens #(.MOST(vdla_pkg::SYNC_C2S_DEPTH)) to_store (
      .clk, .rst, .give(exec_copies.next + exec_runs.next), .take(start[STORE] && wants_prev[STORE]), .there(c2s), .fault(token_fault[2])
  );
  tokens #(.MOST(vdla_pkg::SYNC_S2C_DEPTH)) from_store (
      .clk, .rst, .give(store_gives.prev), .take(start[EXEC] && wants_next[EXEC]), .there(s2c), .fault(token_fault[3])
  );
  assign missing = {
    wants_next[EXEC] && !s2c, wants_prev[STORE] && !c2s, wants_next[LOAD] && !c2l, wants_prev[EXEC] && !l2c
  };
  assign has_tokens = {!missing[2], !missing[3] && !missing[0], !missing[1]};
  assign ready = ~empty & idle;
  assign start = ready & has_tokens;

  // ---- what the heads are ----
  logic [2:0] nop, copies;
  always_comb
    for (int q = 0; q < 3; q++) begin
      nop[q] = start[q] && head[q].word[2:0] == vdla_pkg::NOP_LOAD__OP;
      copies[q] = start[q] && (head[q].word[2:0] == vdla_pkg::LD_INP__OP || head[q].word[2:0] == vdla_pkg::ST__OP);
    end
  function automatic tokens_t carried(input logic is_nop, input word_t w);
    return is_nop ? '{prev: 8'(w[vdla_pkg::HEAD__PUSH_PREV_AT]), next: 8'(w[vdla_pkg::HEAD__PUSH_NEXT_AT])} : '0;
  endfunction

  // ---- copies ----
  request_t request[3];
  logic [2:0] granted;
  logic [31:0] latency;
  logic port_busy;
  port ports (.clk, .rst, .rate, .low(latency_low), .high(latency_high), .seed, .request, .granted, .latency, .busy(port_busy));

  logic [1:0] read, write, write_zero;
  logic [31:0] read_address[2], read_bytes[2], write_at[2];
  logic [2:0] write_kind[2], flight_fault;
  logic [WGT_BITS-1:0] read_data[2];
  retire_t copy_retires[3], exec_retires, retire[3];
  logic load_idle, exec_idle, copy_idle, store_idle, exec_flying;
  logic [2:0] flying;
  dma_read #(.BLOCKING(0)) loads (
      .clk, .rst, .now, .rate, .idle(load_idle), .start(copies[LOAD]), .copy(head[LOAD].word), .number(head[LOAD].number),
      .retire(copy_retires[LOAD]), .request(request[LOAD]), .granted(granted[LOAD]), .latency, .read(read[0]),
      .read_address(read_address[0]), .read_bytes(read_bytes[0]), .write(write[0]), .write_zero(write_zero[0]),
      .write_kind(write_kind[0]), .write_at(write_at[0]), .carry(carried(nop[LOAD], head[LOAD].word)), .give(load_gives),
      .flying(flying[LOAD]), .fault(flight_fault[LOAD])
  );
  dma_read #(.BLOCKING(1)) exec_loads (
      .clk, .rst, .now, .rate, .idle(copy_idle), .start(copies[EXEC]), .copy(head[EXEC].word), .number(head[EXEC].number),
      .retire(copy_retires[EXEC]), .request(request[EXEC]), .granted(granted[EXEC]), .latency, .read(read[1]),
      .read_address(read_address[1]), .read_bytes(read_bytes[1]), .write(write[1]), .write_zero(write_zero[1]),
      .write_kind(write_kind[1]), .write_at(write_at[1]), .carry('0), .give(exec_copies), .flying(flying[EXEC]),
      .fault(flight_fault[EXEC])
  );
  logic acc_read, dram_write;
  logic [31:0] acc_read_at, dram_write_address, dram_write_bytes;
  logic [ACC_BITS-1:0] acc_for_store, dram_write_data;
  dma_write stores (
      .clk, .rst, .now, .rate, .idle(store_idle), .start(copies[STORE]), .copy(head[STORE].word), .number(head[STORE].number),
      .retire(copy_retires[STORE]), .request(request[STORE]), .granted(granted[STORE]), .latency, .read(acc_read),
      .read_at(acc_read_at), .read_data(acc_for_store), .write(dram_write), .write_address(dram_write_address),
      .write_bytes(dram_write_bytes), .write_data(dram_write_data), .carry(carried(nop[STORE], head[STORE].word)),
      .give(store_gives), .flying(flying[STORE]), .fault(flight_fault[STORE])
  );
  dram memory (
      .clk, .rst(reset || rst), .handle, .fetch(!fetch_done && fetch_number < length), .fetch_address(program_address + 64'(fetch_number) * 16),
      .fetched, .read, .read_address, .read_bytes, .read_data, .write(dram_write), .write_address(dram_write_address),
      .write_bytes(dram_write_bytes), .write_data(dram_write_data)
  );

  // ---- computing ----
  logic is_gemm, is_alu, overwrite, use_imm;
  logic [UOP_INDEX-1:0] uop_at;
  logic [31:0] uop;
  logic [10:0] c, x;
  logic [9:0] b;
  logic [2:0] code;
  logic signed [15:0] imm;
  execute executor (
      .clk, .rst, .now, .idle(exec_idle), .start(start[EXEC] && !nop[EXEC] && !copies[EXEC]), .start_nop(nop[EXEC]),
      .word(head[EXEC].word), .number(head[EXEC].number), .retire(exec_retires), .uop_at, .uop, .is_gemm, .is_alu,
      .c, .x, .b, .overwrite, .code, .use_imm, .imm, .give(exec_runs), .flying(exec_flying)
  );
  assign idle = {store_idle, exec_idle && copy_idle, load_idle};

  // ---- buffers ----
  wire load_wgt = write[0] && write_kind[0] == vdla_pkg::LD_WGT__KIND, load_inp = write[0] && !load_wgt;
  wire load_uop = write[1] && write_kind[1] == vdla_pkg::LD_UOP__KIND, load_acc = write[1] && !load_uop;
  logic [ACC_BITS-1:0] acc_old, acc_x, sum, result, widened;

  buffer #(.WIDTH(32), .WORDS(vdla_pkg::MEMORY_UOP_WORDS)) uops (
      .clk, .write(load_uop), .write_at(UOP_INDEX'(write_at[1])), .write_data(read_data[1][31:0]),
      .write_zero(1'b0), .read_at(uop_at), .read_data(uop)
  );
  always_comb begin
    widened = read_data[1][ACC_BITS-1:0];
    if (load_acc && write_kind[1] == vdla_pkg::LD_ACC8__KIND)
      for (int j = 0; j < 16; j++) widened[32*j+:32] = 32'($signed(read_data[1][8*j+:8]));
    if (load_acc && write_zero[1]) widened = '0;
  end
  accumulators acc (
      .clk, .load(load_acc), .load_at(ACC_INDEX'(write_at[1])), .load_data(widened),
      .read(is_gemm || is_alu), .read_c(ACC_INDEX'(c)), .read_x(ACC_INDEX'(x)), .c(acc_old), .x(acc_x),
      .result(is_gemm ? sum : result), .store(acc_read), .store_at(ACC_INDEX'(acc_read_at)), .store_data(acc_for_store)
  );
  gemm mac (
      .clk, .load_inp, .load_inp_at(INP_INDEX'(write_at[0])), .load_wgt, .load_wgt_at(WGT_INDEX'(write_at[0])),
      .load_data(read_data[0]), .load_zero(write_zero[0]), .valid(is_gemm), .overwrite, .inp_at(INP_INDEX'(x)),
      .wgt_at(WGT_INDEX'(b)), .old(acc_old), .sum
  );
  alu lanes (.valid(is_alu), .code, .use_imm, .imm, .c(acc_old), .x(acc_x), .result);

  logic beyond;
  always_ff @(posedge clk) begin
    beyond <= beyond || (load_inp && write_at[0] >= vdla_pkg::MEMORY_INP_WORDS) ||
        (load_wgt && write_at[0] >= vdla_pkg::MEMORY_WGT_WORDS) || (load_acc && write_at[1] >= vdla_pkg::MEMORY_ACC_WORDS) ||
        (load_uop && write_at[1] >= vdla_pkg::MEMORY_UOP_WORDS) || (acc_read && acc_read_at >= vdla_pkg::MEMORY_ACC_WORDS) ||
        ((is_gemm || is_alu) && 32'(c) >= vdla_pkg::MEMORY_ACC_WORDS) ||
        (is_gemm && (32'(x) >= vdla_pkg::MEMORY_INP_WORDS || 32'(b) >= vdla_pkg::MEMORY_WGT_WORDS)) ||
        (is_alu && !use_imm && 32'(x) >= vdla_pkg::MEMORY_ACC_WORDS);
    if (rst) beyond <= 1'b0;
  end
  assign fault = '{flight: |flight_fault, buffer: beyond, tokens: |token_fault, instruction: fetch_fault};

  // ---- the end, and what is known of it ----
  wire none_here = !exec_flying && flying == 0;
  assign done  = running && fetch_done && (&empty) && none_here;
  assign stuck = running && !done && none_here && push == 0 && start == 0 && (fetch_done || !(&empty)) && !fetch_starts;
  logic fetch_starts;
  always_ff @(posedge clk) fetch_starts <= rst || !running;

  always_comb begin
    retire[LOAD] = copy_retires[LOAD];
    if (nop[LOAD]) retire[LOAD] = '{valid: 1'b1, number: head[LOAD].number, start: now, finish: now + 1};
    retire[EXEC] = copy_retires[EXEC].valid ? copy_retires[EXEC] : exec_retires;
    retire[STORE] = copy_retires[STORE];
    if (nop[STORE]) retire[STORE] = '{valid: 1'b1, number: head[STORE].number, start: now, finish: now + 1};
  end
  logic [COUNTERS-1:0] one;
  always_comb begin
    one = '0;
    one[COUNT_GEMM] = is_gemm;
    one[COUNT_ALU] = is_alu;
    one[COUNT_PORT] = port_busy;
    for (int q = 0; q < 3; q++) begin
      one[int'(COUNT_LOAD_BUSY)+q] = (!idle[q] || start[q]) && !(request[q].valid && !granted[q]);
      one[int'(COUNT_LOAD_INSTRUCTIONS)+q] = start[q];
      one[int'(COUNT_LOAD_PORT_WAIT)+q] = request[q].valid && !granted[q];
    end
    for (int t = 0; t < 4; t++) one[int'(COUNT_L2C_WAIT)+t] = missing[t] && ready[t==1?LOAD : t==2 ? STORE : EXEC];
  end
  counters count (
      .clk, .rst(reset || rst), .handle, .one, .retire, .read, .read_bytes, .read_kind(read_bytes[1] == 4 ? vdla_pkg::LD_UOP__KIND : vdla_pkg::LD_ACC__KIND),
      .write(dram_write), .write_bytes(dram_write_bytes), .counter
  );
endmodule
