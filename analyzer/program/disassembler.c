#include "analyzer/program/disassembler.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>

/* The functions of Capstone that are called. */
#define FUNCTIONS(DO)   \
	DO(open)        \
	DO(close)       \
	DO(option)      \
	DO(malloc)      \
	DO(free)        \
	DO(disasm_iter) \
	DO(regs_access) \
	DO(insn_group)

struct functions {
#define DECLARE(name) typeof(&cs_##name) name;
	FUNCTIONS(DECLARE)
};

struct disassembler {
	void *library;
	struct functions functions;
	csh handle;
	cs_insn *instruction;
};

#ifdef CAPSTONE_LIBRARY
static struct error *load(struct disassembler *disassembler)
{
	struct functions *functions = &disassembler->functions;
	const char *missing = NULL;

	errno = 0;
	disassembler->library = dlopen(CAPSTONE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!disassembler->library && errno == ENOMEM)
		return &error_no_memory;
	if (!disassembler->library)
		return error_create(ERROR_NOT_SUPPORTED, "machine code cannot be read: %s",
				    dlerror());
#define LOAD(name)                                                   \
	functions->name = dlsym(disassembler->library, "cs_" #name); \
	if (!functions->name)                                        \
		missing = "cs_" #name;
	FUNCTIONS(LOAD)
	return missing ? error_create(ERROR_NOT_SUPPORTED, "%s has no %s", CAPSTONE_LIBRARY,
				      missing)
		       : NULL;
}
#else
/* The program is linked statically. */
static struct error *load(struct disassembler *disassembler)
{
#define LOAD(name) disassembler->functions.name = cs_##name;
	FUNCTIONS(LOAD)
	return NULL;
}
#endif

struct error *disassembler_create(const struct arch *arch, struct disassembler **ret)
{
	_cleanup_(disassembler_destroy) struct disassembler *disassembler =
		calloc(1, sizeof(*disassembler));
	const struct functions *functions;

	TRY_MEMORY(disassembler);
	TRY(load(disassembler));
	functions = &disassembler->functions;
	/* Or load() had failed. */
	assert(functions->open && functions->option && functions->malloc);
	if (functions->open((cs_arch)arch->disassembler, (cs_mode)arch->disassembler_mode,
			    &disassembler->handle) != CS_ERR_OK)
		return &error_no_memory;
	functions->option(disassembler->handle, CS_OPT_DETAIL, CS_OPT_ON);
	disassembler->instruction = functions->malloc(disassembler->handle);
	TRY_MEMORY(disassembler->instruction);
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
