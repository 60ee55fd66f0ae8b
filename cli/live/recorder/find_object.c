/*
 * _dl_find_object() for a glibc before 2.35, which lacks it: libgcc's unwinder, a part of the
 * recorder, asks it for the module of each call. Here the modules are searched one by one, so it is
 * slower.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef DLFO_STRUCT_HAS_EH_DBASE
struct search {
	uintptr_t address;
	struct dl_find_object *ret;
};

static int (*next)(void *address, struct dl_find_object *ret);

/* Before the recorder starts: dlsym() may allocate. */
__attribute__((constructor(101))) static void find_next(void)
{
	next = (__typeof__(next))dlsym(RTLD_NEXT, "_dl_find_object");
}

static int find(struct dl_phdr_info *module, size_t size, void *data)
{
	const struct search *search = data;
	bool is_there = false;

	search->ret->dlfo_eh_frame = NULL;
	for (int i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &module->dlpi_phdr[i];
		uintptr_t start = module->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && search->address - start < segment->p_memsz)
			is_there = true;
		if (segment->p_type == PT_GNU_EH_FRAME)
			search->ret->dlfo_eh_frame = (void *)start;
	}
	return is_there;
}

int _dl_find_object(void *address, struct dl_find_object *ret)
{
	struct search search = { (uintptr_t)address, ret };

	if (next)
		return next(address, ret);
	return dl_iterate_phdr(find, &search) && ret->dlfo_eh_frame ? 0 : -1;
}
#endif
