/*
 * Perl 5.
 *
 * It counts references and frees no cycle of them: what only a cycle holds is lost. So all that no
 * root leads to is leaked; its arenas are no roots.
 */
#include "analyzer/runtimes/perl/objects.h"
#include "analyzer/runtimes/perl/space.h"

const struct runtime runtime_perl = {
	.name = "perl",
	.modules = "perl|libperl.so|=perl_construct",
	.space_size = sizeof(struct perl),
	.release = perl_release,
	.find_objects = perl_find_objects,
	.is_certain = true,
	.class_name = perl_class_name,
	.visit_bases = perl_visit_bases,
	.is_link = perl_is_link,
	.resolve = perl_resolve,
	.is_counted = true,
	.keeps_cycles = true,
	.liveness = perl_liveness,
	.known_leak = perl_known_leak,
	.visit_frames = perl_visit_frames,
	.find_globals = perl_find_globals,
	.find_locals = perl_find_locals,
	.visit_links = perl_visit_object,
	.tell_step = perl_tell_step,
	.leaks_note =
		"Perl is loaded, but no arenas of its values were found: cycles of references that it never frees are not among what is leaked",
};
