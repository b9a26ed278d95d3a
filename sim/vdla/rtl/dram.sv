// DRAM, seen from the chip: the bytes are the simulator's (sim/vdla/shim.cpp), the times are the port's. What is read is
// there in the next cycle.
module dram
  import vdla_types::*;
(
    input  logic                clk,
    input  logic                rst,
    input  logic [        63:0] handle,
    input  logic                fetch,
    input  logic [        63:0] fetch_address,
    output word_t               fetched,
    input  logic [         1:0] read,
    input  logic [        31:0] read_address[2],
    input  logic [        31:0] read_bytes[2],
    output logic [WGT_BITS-1:0] read_data[2],
    input  logic                write,
    input  logic [        31:0] write_address,
    input  logic [        31:0] write_bytes,
    input  logic [ACC_BITS-1:0] write_data
);
  import "DPI-C" function void vdla_dpi_fetch(input longint unsigned handle, input longint unsigned address, output bit [127:0] data);
  import "DPI-C" function void vdla_dpi_read(input longint unsigned handle, input int unsigned address, input int unsigned bytes,
                                              output bit [WGT_BITS-1:0] data);
  import "DPI-C" function void vdla_dpi_write(input longint unsigned handle, input int unsigned address, input int unsigned bytes,
                                               input bit [ACC_BITS-1:0] data);
  always_ff @(posedge clk)
    if (!rst) begin
      if (fetch) vdla_dpi_fetch(handle, fetch_address, fetched);
      for (int p = 0; p < 2; p++) if (read[p]) vdla_dpi_read(handle, read_address[p], read_bytes[p], read_data[p]);
      if (write) vdla_dpi_write(handle, write_address, write_bytes, write_data);
    end
endmodule
