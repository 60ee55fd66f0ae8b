#include "cli/serve/microhttpd.h"

#ifdef MICROHTTPD_LIBRARY
#include <dlfcn.h>

struct error *microhttpd_load(struct microhttpd *ret)
{
	void *library = dlopen(MICROHTTPD_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	const char *missing = NULL;

	if (!library)
		return error_create(ERROR_NOT_SUPPORTED, "serve needs a library: %s", dlerror());
#define LOAD(name)                                \
	ret->name = dlsym(library, "MHD_" #name); \
	if (!ret->name)                           \
		missing = "MHD_" #name;
	MICROHTTPD_FUNCTIONS(LOAD)
	return missing ? error_create(ERROR_NOT_SUPPORTED, "%s has no %s", MICROHTTPD_LIBRARY,
				      missing)
		       : NULL;
}
#else
/* The program is linked statically. */
struct error *microhttpd_load(struct microhttpd *ret)
{
#define LOAD(name) ret->name = MHD_##name;
	MICROHTTPD_FUNCTIONS(LOAD)
	return NULL;
}
#endif
