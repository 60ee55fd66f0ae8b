#include "analyzer/runtimes/crystal/disassembler.h"

#include <assert.h>
#include <dlfcn.h>

/* What is called of it, by the names that it has there. */
struct functions {
	typeof(&cs_open) open;
	typeof(&cs_close) close;
	typeof(&cs_option) option;
	typeof(&cs_malloc) malloc;
	typeof(&cs_free) free;
	typeof(&cs_disasm_iter) disasm_iter;
	typeof(&cs_regs_access) regs_access;
	typeof(&cs_insn_group) insn_group;
};

struct disassembler {
	void *library;
	struct functions functions;
	csh handle;
	cs_insn *instruction;
};

static struct error *load(struct disassembler *disassembler)
{
	struct functions *functions = &disassembler->functions;
	const struct {
		const char *name;
		void *function; /* where to put its address */
	} wanted[] = {
		{ "cs_open", &functions->open },
		{ "cs_close", &functions->close },
		{ "cs_option", &functions->option },
		{ "cs_malloc", &functions->malloc },
		{ "cs_free", &functions->free },
		{ "cs_disasm_iter", &functions->disasm_iter },
		{ "cs_regs_access", &functions->regs_access },
		{ "cs_insn_group", &functions->insn_group },
	};

	disassembler->library = dlopen(CAPSTONE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!disassembler->library)
		return error_create(ERROR_NOT_SUPPORTED, "machine code cannot be read: %s",
				    dlerror());
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		void *address = dlsym(disassembler->library, wanted[i].name);

		if (!address)
			return error_create(ERROR_NOT_SUPPORTED, "%s has no %s", CAPSTONE_LIBRARY,
					    wanted[i].name);
		*(void **)wanted[i].function = address;
	}
	return NULL;
}

struct error *disassembler_create(const struct arch *arch, struct disassembler **ret)
{
	_cleanup_(disassembler_destroy) struct disassembler *disassembler =
		calloc(1, sizeof(*disassembler));
	const struct functions *functions;
	struct error *error;

	if (!disassembler)
		return &error_no_memory;
	error = load(disassembler);
	if (error)
		return error;
	functions = &disassembler->functions;
	/* Or load() had failed. */
	assert(functions->open && functions->option && functions->malloc);
	if (functions->open((cs_arch)arch->disassembler, (cs_mode)arch->disassembler_mode,
			    &disassembler->handle) != CS_ERR_OK)
		return &error_no_memory;
	functions->option(disassembler->handle, CS_OPT_DETAIL, CS_OPT_ON);
	disassembler->instruction = functions->malloc(disassembler->handle);
	if (!disassembler->instruction)
		return &error_no_memory;
	*ret = take(disassembler);
	return NULL;
}

void disassembler_destroy(struct disassembler *disassembler)
{
	const struct functions *functions = &disassembler->functions;

	if (disassembler->instruction)
		functions->free(disassembler->instruction, 1);
	if (disassembler->handle)
		functions->close(&disassembler->handle);
	if (disassembler->library)
		dlclose(disassembler->library);
	free(disassembler);
}

bool disassembler_next(struct disassembler *disassembler, const uint8_t **code, size_t *size,
		       uint64_t *address)
{
	return disassembler->functions.disasm_iter(disassembler->handle, code, size, address,
						   disassembler->instruction);
}

const cs_insn *disassembler_instruction(const struct disassembler *disassembler)
{
	return disassembler->instruction;
}

bool disassembler_is(const struct disassembler *disassembler, unsigned int group)
{
	return disassembler->functions.insn_group(disassembler->handle, disassembler->instruction,
						  group);
}

bool disassembler_written(const struct disassembler *disassembler, cs_regs ret, uint8_t *ret_count)
{
	uint8_t read_count;
	cs_regs read;

	return disassembler->functions.regs_access(disassembler->handle, disassembler->instruction,
						   read, &read_count, ret, ret_count) == CS_ERR_OK;
}
