#include "analyzer/runtimes/runtime.h"

/* Perl counts references and frees no cycle of them, to which its arenas still lead. */
const struct runtime runtime_perl = {
	.name = "perl",
	.modules = "perl|libperl.so",
	.leaks_note =
		"Perl is loaded: its arenas lead to all of its values, so cycles of references that it never frees are not among what is leaked",
};
