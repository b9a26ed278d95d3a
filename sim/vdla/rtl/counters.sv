// What is counted, and the record of each instruction that has left its queue.
module counters
  import vdla_types::*;
(
    input  logic                   clk,
    input  logic                   rst,
    input  logic            [63:0] handle,
    input  logic    [COUNTERS-1:0] one,                // add 1
    input  retire_t                retire[3],
    input  logic             [1:0] read,
    input  logic            [31:0] read_bytes[2],
    input  logic             [2:0] read_kind,          // of the copies to accumulators and micro-ops
    input  logic                   write,
    input  logic            [31:0] write_bytes,
    output logic            [63:0] counter[COUNTERS]
);
  import "DPI-C" function void vdla_dpi_retire(input longint unsigned handle, input int unsigned from, input int unsigned number,
                                            input longint unsigned start, input longint unsigned finish);
  wire [31:0] loaded = read[0] ? read_bytes[0] : 0, executed = read[1] ? read_bytes[1] : 0;
  wire is_uop = read_kind == vdla_pkg::LD_UOP__KIND;

  always_ff @(posedge clk) begin
    for (int k = 0; k < COUNTERS; k++) if (one[k]) counter[k] <= counter[k] + 1;
    if (read[0] && read_bytes[0] == copy_word(vdla_pkg::LD_INP__KIND)) counter[COUNT_INP_BYTES] <= counter[COUNT_INP_BYTES] + 64'(loaded);
    if (read[0] && read_bytes[0] == copy_word(vdla_pkg::LD_WGT__KIND)) counter[COUNT_WGT_BYTES] <= counter[COUNT_WGT_BYTES] + 64'(loaded);
    if (read[1] && is_uop) counter[COUNT_UOP_BYTES] <= counter[COUNT_UOP_BYTES] + 64'(executed);
    if (read[1] && !is_uop) counter[COUNT_ACC_BYTES] <= counter[COUNT_ACC_BYTES] + 64'(executed);
    if (write) counter[COUNT_STORED_BYTES] <= counter[COUNT_STORED_BYTES] + 64'(write_bytes);
    if (!rst)
      for (int q = 0; q < 3; q++) if (retire[q].valid) vdla_dpi_retire(handle, q, retire[q].number, retire[q].start, retire[q].finish);
    if (rst) for (int k = 0; k < COUNTERS; k++) counter[k] <= '0;
  end
endmodule
