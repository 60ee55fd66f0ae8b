#include "analyzer/program/getter.h"

/* True if it loads the word into the register of results. */
static bool is_load(const struct arch *arch, const cs_insn *instruction, uint64_t offset)
{
	const cs_x86_op *to = instruction->detail->x86.operands, *from = to + 1;

	return instruction->id == X86_INS_MOV && from->type == X86_OP_MEM && from->size == 8 &&
	       !from->mem.index && !from->mem.segment && from->mem.disp == (int64_t)offset &&
	       to->type == X86_OP_REG && arch->disassembled(to->reg) == arch->result &&
	       arch->disassembled(from->mem.base) == arch->parameters[0];
}

static bool writes(const struct arch *arch, const struct disassembler *disassembler,
		   unsigned int number)
{
	cs_regs written;
	uint8_t count;

	if (!disassembler_written(disassembler, written, &count))
		return true;
	for (uint8_t i = 0; i < count; i++)
		if (arch->disassembled(written[i]) == number)
			return true;
	return false;
}

static bool can_read(const struct arch *arch, struct disassembler **disassembler)
{
	if (!*disassembler && arch->disassembled)
		error_destroy(disassembler_create(arch, disassembler));
	return *disassembler != NULL;
}

/* A way through it without a call or jump ends with the word as the result. */
bool getter_returns(const struct image *image, struct disassembler **disassembler, uint64_t entry,
		    uint64_t offset)
{
	enum { MOST_INSTRUCTIONS = 24 };
	const struct arch *arch = image->arch;
	bool is_loaded = false;
	uint64_t size;
	const uint8_t *code = image_bytes(image, entry, &size);

	if (!code || !can_read(arch, disassembler))
		return false;
	for (int i = 0;
	     i < MOST_INSTRUCTIONS && disassembler_next(*disassembler, &code, &size, &entry); i++) {
		const cs_insn *instruction = disassembler_instruction(*disassembler);

		if (disassembler_is(*disassembler, CS_GRP_RET))
			return is_loaded;
		if (disassembler_is(*disassembler, CS_GRP_CALL) || instruction->id == X86_INS_JMP)
			return false;
		if (is_load(arch, instruction, offset))
			is_loaded = true;
		else if (writes(arch, *disassembler, arch->result) ||
			 (!is_loaded && writes(arch, *disassembler, arch->parameters[0])))
			return false;
	}
	return false;
}
