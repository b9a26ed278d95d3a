// 16 lanes of 32 bits. Shifts by more than a word leave the sign, by a negative amount they go to the left.
module alu
  import vdla_types::*;
(
    input  logic                valid,
    input  logic         [ 2:0] code,
    input  logic                use_imm,
    input  logic signed  [15:0] imm,
    input  logic [ACC_BITS-1:0] c,
    input  logic [ACC_BITS-1:0] x,
    output logic [ACC_BITS-1:0] result
);
  function automatic logic signed [31:0] shifted(input logic signed [31:0] v, input logic signed [31:0] by);
    if (by >= 32) return v >>> 31;
    if (by >= 0) return v >>> by[4:0];
    if (by <= -32) return 0;
    return v << 5'(-by);
  endfunction

  function automatic logic signed [31:0] lane(input logic [2:0] what, input logic signed [31:0] a, input logic signed [31:0] b);
    case (what)
      vdla_pkg::ALU_MIN__CODE: return a < b ? a : b;
      vdla_pkg::ALU_MAX__CODE: return a > b ? a : b;
      vdla_pkg::ALU_ADD__CODE: return a + b;
      vdla_pkg::ALU_SHR__CODE: return shifted(a, b);
      vdla_pkg::ALU_MUL__CODE: return a * b;
      default: return a;
    endcase
  endfunction

  always_comb begin
    result = '0;
    if (valid)
      for (int j = 0; j < 16; j++)
        result[32*j+:32] = lane(code, c[32*j+:32], use_imm ? 32'(imm) : x[32*j+:32]);
  end
endmodule
