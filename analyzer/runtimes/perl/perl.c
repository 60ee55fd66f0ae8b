/*
 * Perl 5.
 *
 * It counts references and frees no cycle of them: what only a cycle holds is lost. So all that no
 * root leads to is leaked; its arenas are no roots.
 */
#include "analyzer/runtimes/perl/links.h"

const struct runtime runtime_perl = {
	.name = "perl",
	.modules = "perl|libperl.so|=perl_construct",
	.space_size = sizeof(struct perl),
	.is_certain = true,
	.is_counted = true,
	.keeps_cycles = true,
	.leaks_note =
		"Perl is loaded, but no arenas of its values were found: cycles of references that it never frees are not among what is leaked",
	FILL_SLOTS(PERL_SLOTS),
	.calls = &(const struct runtime_calls){ FILL_SLOTS(PERL_CALL_SLOTS) },
	.links = &(const struct runtime_links){ FILL_SLOTS(PERL_LINK_SLOTS), .steps = perl_steps },
};
