// Tokens from one queue to another. They are there in the cycle after they are given. The counter neither wraps
// nor saturates silently: that is a fault.
module tokens #(
    parameter int MOST = 255
) (
    input  logic       clk,
    input  logic       rst,
    input  logic [7:0] give,
    input  logic       take,
    output logic       there,
    output logic       fault
);
  logic [8:0] count, next;
  logic       bad;

  assign there = count != 0;
  assign next  = count + 9'(give) - 9'(take);
  assign bad   = !rst && ((take && !there) || 10'(count) + 10'(give) > 10'(MOST) + 10'(take));

  always_ff @(posedge clk) begin
    assert (rst || !(take && !there)) else $error("a token is taken that is not there");
    assert (rst || !(bad && there)) else $error("more than %0d tokens", MOST);
    if (rst) begin
      count <= '0;
      fault <= 1'b0;
    end
    else begin
      count <= bad ? count : next;
      fault <= fault || bad;
    end
  end
endmodule
