// Reads one instruction a cycle, in order, and gives it to the queue that executes it. A queue without room holds up
// all that come later. Instructions come over wires of their own, not over the port of the copies.
module fetch
  import vdla_types::*;
(
    input  logic          clk,
    input  logic          rst,
    input  logic   [31:0] length,      // instructions in the stream
    output logic   [31:0] number,      // that is read, for the next cycle
    input  word_t         word,        // that was asked for in the cycle before
    input  logic   [ 2:0] room,        // of the queues: load, exec, store
    output logic   [ 2:0] push,
    output entry_t        entry,
    output logic          done,
    output logic          fault
);
  logic [31:0] at;
  logic        here, known, finish;
  logic [ 2:0] queue;
  wire [2:0] op = word[vdla_pkg::LD_INP__OP_AT+:vdla_pkg::LD_INP__OP_BITS];
  wire [2:0] kind = word[vdla_pkg::LD_INP__KIND_AT+:vdla_pkg::LD_INP__KIND_BITS];

  always_comb begin
    known  = 1'b1;
    finish = 1'b0;
    queue  = 3'b000;
    case (op)
      vdla_pkg::LD_INP__OP:
      case (kind)
        vdla_pkg::LD_INP__KIND, vdla_pkg::LD_WGT__KIND: queue = 3'b001;
        vdla_pkg::LD_ACC__KIND, vdla_pkg::LD_ACC8__KIND, vdla_pkg::LD_ROW__KIND, vdla_pkg::LD_UOP__KIND: queue = 3'b010;
        default: known = 1'b0;
      endcase
      vdla_pkg::ST__OP: begin
        queue = 3'b100;
        known = kind == vdla_pkg::ST__KIND || kind == vdla_pkg::ST_ACC__KIND;
      end
      vdla_pkg::GEMM__OP, vdla_pkg::ALU_MIN__OP: queue = 3'b010;
      vdla_pkg::NOP_LOAD__OP:
      case (kind)
        vdla_pkg::NOP_LOAD__KIND:  queue = 3'b001;
        vdla_pkg::NOP_EXEC__KIND:  queue = 3'b010;
        vdla_pkg::NOP_STORE__KIND: queue = 3'b100;
        default: known = 1'b0;
      endcase
      vdla_pkg::END__OP: finish = 1'b1;
      default: known = 1'b0;
    endcase
  end

  wire more = here && !done && at < length;
  wire goes = more && known && !finish && |(queue & room);
  assign push   = goes ? queue : 3'b000;
  assign entry  = '{number: at, word: word};
  assign number = goes ? at + 1 : at;

  always_ff @(posedge clk) begin
    here <= !rst;
    at   <= number;
    done <= done || (here && (at >= length || finish || !known));
    fault <= fault || (more && !known);
    if (rst) begin
      at    <= '0;
      done  <= 1'b0;
      fault <= 1'b0;
    end
  end
endmodule
