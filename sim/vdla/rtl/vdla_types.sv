// What the modules hand to one another. Positions of fields in instructions come from vdla_pkg, which is
// made from machines/vdla.xml.
package vdla_types;
  localparam int ACC_BITS = 32 * 16, WGT_BITS = 8 * 16 * 16;
  localparam int INP_INDEX = $clog2(vdla_pkg::MEMORY_INP_WORDS), WGT_INDEX = $clog2(vdla_pkg::MEMORY_WGT_WORDS);
  localparam int ACC_INDEX = $clog2(vdla_pkg::MEMORY_ACC_WORDS), UOP_INDEX = $clog2(vdla_pkg::MEMORY_UOP_WORDS);
  localparam int FLIGHT = 512;  // copies of one queue that may wait for DRAM: with more than LAT / 2 none waits for room

  typedef logic [127:0] word_t;
  typedef logic [63:0] cycle_t;

  // An instruction in its queue: its number in the stream says which of two is older.
  typedef struct packed {
    logic [31:0] number;
    word_t       word;
  } entry_t;

  // The copy that asks for the port.
  typedef struct packed {
    logic        valid;
    cycle_t      since;
    logic [31:0] number, bytes;
  } request_t;

  // How much a copy moves: words that have a source, places in the buffer that are written, bytes over the port.
  typedef struct packed {
    logic        row;  // one word fills all places
    logic [31:0] words, places, bytes;
  } extent_t;

  // Tokens for the two neighbours of a queue, in one cycle.
  typedef struct packed {
    logic [7:0] prev, next;
  } tokens_t;

  typedef struct packed {
    logic        valid;
    logic [31:0] number;
    cycle_t      start, finish;
  } retire_t;

  typedef enum int {
    COUNT_GEMM, COUNT_ALU, COUNT_PORT,
    COUNT_LOAD_BUSY, COUNT_EXEC_BUSY, COUNT_STORE_BUSY,
    COUNT_LOAD_INSTRUCTIONS, COUNT_EXEC_INSTRUCTIONS, COUNT_STORE_INSTRUCTIONS,
    COUNT_LOAD_PORT_WAIT, COUNT_EXEC_PORT_WAIT, COUNT_STORE_PORT_WAIT,
    COUNT_L2C_WAIT, COUNT_C2L_WAIT, COUNT_C2S_WAIT, COUNT_S2C_WAIT,
    COUNT_INP_BYTES, COUNT_WGT_BYTES, COUNT_ACC_BYTES, COUNT_UOP_BYTES, COUNT_STORED_BYTES,
    COUNTERS
  } counter_t;

  // Sticky bits: what should never happen, whoever wrote the program.
  typedef struct packed {
    logic flight;      // more copies wait for DRAM than there is room for
    logic buffer;      // an address behind the end of a buffer
    logic tokens;      // more tokens than a counter holds, or fewer than none
    logic instruction; // no such instruction
  } fault_t;

  function automatic logic [31:0] copy_word(input logic [2:0] kind);  // bytes in DRAM of a word of that copy
    case (kind)
      vdla_pkg::LD_UOP__KIND:  return 4;
      vdla_pkg::LD_WGT__KIND:  return 256;
      vdla_pkg::LD_INP__KIND:  return 16;
      vdla_pkg::LD_ACC8__KIND: return 16;
      default:                 return 64;
    endcase
  endfunction
endpackage
