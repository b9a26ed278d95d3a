// GEMM and ALU instructions: two loops around a sequence of micro-ops, one a cycle. Three stages: fetch the micro-op; add the
// loops' offsets to its words; read operands, compute, write. An accumulator is read and written in the same
// cycle, so what follows needs no forwarding.
module execute
  import vdla_types::*;
(
    input  logic                    clk,
    input  logic                    rst,
    input  cycle_t                  now,
    output logic                    idle,         // an instruction may start in this cycle
    input  logic                    start,
    input  logic                    start_nop,    // it only carries tokens, in order with the others
    input  word_t                   word,
    input  logic             [31:0] number,
    output retire_t                 retire,
    // micro-ops
    output logic    [UOP_INDEX-1:0] uop_at,
    input  logic             [31:0] uop,
    // operands, of the cycle in which they are computed with
    output logic                    is_gemm,
    output logic                    is_alu,
    output logic             [10:0] c,
    output logic             [10:0] x,            // inputs or the second accumulator
    output logic             [ 9:0] b,
    output logic                    overwrite,
    output logic             [ 2:0] code,
    output logic                    use_imm,
    output logic signed      [15:0] imm,
    output tokens_t                 give,
    output logic                    flying
);
  vdla_pkg::gemm_t g;
  vdla_pkg::alu_min_t a;
  logic run, alu;
  logic [31:0] our_number;
  cycle_t since;
  logic [13:0] o, i, u;
  logic [10:0] c_outer, c_at, x_outer, x_at;
  logic [9:0] b_outer, b_at;

  wire last_u = u + 1 >= g.end_;
  wire last_i = i + 1 >= g.inner;
  wire last_o = o + 1 >= g.outer;
  wire last = run && last_u && last_i && last_o;

  assign a        = vdla_pkg::alu_min_t'(g);
  assign alu      = g.op == vdla_pkg::ALU_MIN__OP;
  assign idle     = !run;
  assign uop_at   = UOP_INDEX'(u);
  assign retire   = '{valid: last || start_nop, number: last ? our_number : number, start: last ? since : now, finish: now + 1};

  wire [10:0] x_outer_step = alu ? a.x_outer : g.a_outer, x_inner_step = alu ? a.x_inner : g.a_inner;

  always_ff @(posedge clk) begin
    if (run) begin
      u <= u + 1;
      if (last_u) begin
        u <= 14'(g.first);
        i <= i + 1;
        c_at <= c_at + g.c_inner;
        x_at <= x_at + x_inner_step;
        b_at <= b_at + g.b_inner;
        if (last_i) begin
          i <= '0;
          o <= o + 1;
          c_outer <= c_outer + g.c_outer;
          x_outer <= x_outer + x_outer_step;
          b_outer <= b_outer + g.b_outer;
          c_at <= c_outer + g.c_outer;
          x_at <= x_outer + x_outer_step;
          b_at <= b_outer + g.b_outer;
        end
      end
    end
    if (last) run <= 1'b0;
    if (start) begin
      run <= 1'b1;
      g <= word;
      our_number <= number;
      since <= now;
      u <= 14'(word[vdla_pkg::GEMM__FIRST_AT+:vdla_pkg::GEMM__FIRST_BITS]);
      {o, i} <= '0;
      {c_outer, c_at, x_outer, x_at} <= '0;
      {b_outer, b_at} <= '0;
    end
    if (rst) run <= 1'b0;
  end

  // ---- the stages ----
  typedef struct packed {
    logic live, gemm, alu;  // live: something is there, if only a nop
    tokens_t give;
  } stage_t;
  stage_t two, three;
  vdla_pkg::gemm_u_t op;
  logic [10:0] c_two, x_two;
  logic [9:0] b_two;
  vdla_pkg::gemm_t g_two, g_three;
  vdla_pkg::alu_min_t a_three;

  wire tokens_t of_run = last ? '{prev: 8'(g.push_prev), next: 8'(g.push_next)} : '0;
  wire tokens_t of_nop =
      start_nop ? '{prev: 8'(word[vdla_pkg::HEAD__PUSH_PREV_AT]), next: 8'(word[vdla_pkg::HEAD__PUSH_NEXT_AT])} : '0;

  always_ff @(posedge clk) begin
    two <= '{live: run || start_nop, gemm: run && !alu, alu: run && alu, give: run ? of_run : of_nop};
    if (run) begin
      op <= uop;
      c_two <= c_at;
      x_two <= x_at;
      b_two <= b_at;
      g_two <= g;
    end
    three <= two;
    if (two.gemm || two.alu) begin
      c <= op.c + c_two;
      x <= op.a + x_two;
      b <= op.b + b_two;
      g_three <= g_two;
    end
    if (rst) begin
      two   <= '0;
      three <= '0;
    end
  end

  assign a_three   = vdla_pkg::alu_min_t'(g_three);
  assign is_gemm   = three.gemm;
  assign is_alu    = three.alu;
  assign overwrite = g_three.overwrite;
  assign code      = a_three.code;
  assign use_imm   = a_three.use_imm;
  assign imm       = signed'(g_three[vdla_pkg::ALU_MIN_IMM__IMM_AT+:vdla_pkg::ALU_MIN_IMM__IMM_BITS]);
  assign give      = three.live ? three.give : '0;
  assign flying    = run || two.live || three.live;
endmodule
