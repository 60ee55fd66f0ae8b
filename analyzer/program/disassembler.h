/*
 * Capstone, which tells what machine code does, loaded once it is needed.
 *
 * Its tables are addresses, which the dynamic linker has to write: that takes 1.3 MB of private
 * memory and some milliseconds, more than all else that most programs need to
 * start.
 */
#pragma once

#include "analyzer/base/error.h"
#include "analyzer/image/arch.h"

#include <capstone/capstone.h>
#include <stdbool.h>

struct disassembler;

/* With what each instruction reads and writes. */
struct error *disassembler_create(const struct arch *arch, struct disassembler **ret);
void disassembler_destroy(struct disassembler *disassembler);
DEFINE_CLEANUP(disassembler_destroy, struct disassembler *)

/*
 * Read the next instruction, and go on to what is behind it: all three move. False at the end, or
 * if there is none.
 */
bool disassembler_next(struct disassembler *disassembler, const uint8_t **code, size_t *size,
		       uint64_t *address);

/* The current instruction; valid until the next one is read. */
const cs_insn *disassembler_instruction(const struct disassembler *disassembler);

/* True if the instruction belongs to that group. */
bool disassembler_is(const struct disassembler *disassembler, unsigned int group);

/* The registers that it writes, into ret; false if that is not known. */
bool disassembler_written(const struct disassembler *disassembler, cs_regs ret, uint8_t *ret_count);
