#include "analyzer/query/set.h"

#include "analyzer/base/macros.h"
#include "analyzer/base/text.h"

#include <inttypes.h>
#include <string.h>

const struct set set_named = {
	.name = "a set of your own",
	.summary = "the members that 'let' stored under that name",
	.needs = STAGE_HEAP,
	.select = select_named,
};

static const struct set
	sets
		[] = {
			{ "allocations", "all allocations, used and free", STAGE_HEAP,
			  .select = select_all, .example = "count allocations" },
			{ "used", "allocations in use", STAGE_HEAP, .state = STATE_USED,
			  .example = "summarize used\n"
				     "list used --sort-by bytes --limit 10",
			  .description =
				  "The program got each from an allocator, such as malloc() or new, and has not freed it." },
			{ "free", "free allocations, those in threads' caches included", STAGE_HEAP,
			  .state = STATE_FREE, .example = "summarize free --sort-by bytes",
			  .description =
				  "Memory that the allocators keep for later. Much of it in many small pieces is a fragmented heap." },
			{ "threadcached", "free allocations in the caches of threads", STAGE_HEAP,
			  .state = STATE_CACHED, .example = "summarize threadcached",
			  .description =
				  "glibc's malloc keeps a few free allocations of each size for each thread (tcache). Their headers say used, but they are not." },
			{ "anchored", "used allocations reachable from a root", STAGE_REACHABILITY,
			  .state = STATE_ANCHORED,
			  .example = "count anchored\n"
				     "summarize anchored app::Session",
			  .description =
				  "A chain of references from static memory, a stack or a register holds each: 'explain' shows that chain." },
			{ "leaked", "used allocations not reachable from any root",
			  STAGE_REACHABILITY, .state = STATE_LEAKED,
			  .example = "summarize leaked\n"
				     "list leaked --sort-by bytes --limit 10",
			  .description =
				  "The program cannot reach them any more, so it cannot free them. Many were lost together with another one: see 'leakroots'." },
			{ "unreferenced",
			  "leaked allocations that no other used allocation refers to",
			  STAGE_REACHABILITY, .select = select_unreferenced,
			  .example = "summarize unreferenced",
			  .description =
				  "A simple approximation of where leaks begin. It misses rings whose members refer to each other; 'leakroots' includes them." },
			{ "leakroots",
			  "where leaks happened: leaked allocations not reachable from another leak",
			  STAGE_LEAKS, .select = select_leakroots,
			  .summary_of = SUMMARY_OF_LEAK_ROOTS,
			  .example = "summarize leakroots\n"
				     "explain leakroots --sort-by bytes --limit 3",
			  .description =
				  "Each leaked allocation was lost with one of these, so fixing these fixes all leaks. A ring has one member as its root." },
			{ "likelyheld",
			  "leaked allocations that a pointer in disguise likely holds",
			  STAGE_DISGUISED, .select = select_likelyheld,
			  .example = "summarize likelyheld",
			  .description =
				  "Allocations reachable from these are members, too. Programs tag pointers in their upper bits, pack them at odd addresses, or keep them as a distance from their own place. No such word counts as a reference, so these are leaked; but where more are found than chance can give, they are likely in use. 'gate' counts them only with '--likely'." },
			{ "collectable",
			  "used allocations that a garbage collector frees once nothing refers to them",
			  STAGE_HEAP, .select = select_managed, .example = "count collectable",
			  .description =
				  "Memory of the Boehm collector, for example in Crystal programs." },
			{ "uncollectable",
			  "used allocations of a garbage collector that the program must free",
			  STAGE_HEAP, .select = select_managed, .choice = CHOICE_UNCOLLECTABLE,
			  .example = "summarize uncollectable",
			  .description = "From GC_malloc_uncollectable() of the Boehm collector." },
			{ "unswept",
			  "allocations that a garbage collector found unused, though they cannot be used again yet",
			  STAGE_HEAP, .state = STATE_UNSWEPT, .example = "count unswept" },
			{ "garbage",
			  "collectable allocations not reachable from any root: not leaked, because the collector will free them",
			  STAGE_REACHABILITY, .state = STATE_GARBAGE,
			  .example = "summarize garbage",
			  .description =
				  "Of languages that count references, these are cycles and what is reachable only from them. A note says if their collector is switched off." },
			{ "heldbygarbage",
			  "allocations that only garbage refers to: once it is collected, nothing can free them",
			  STAGE_REACHABILITY, .state = STATE_HELD,
			  .example = "summarize heldbygarbage" },
			{ "atrisk",
			  "collectable allocations in use that the collector may free, because it does not see the references to them",
			  STAGE_COLLECTOR, .select = select_atrisk,
			  .example = "explain atrisk --limit 3" },
			{ "anchorpoints", "allocations that a root refers to directly",
			  STAGE_REACHABILITY, .select = select_at_roots,
			  .choice = ALL_ROOTS | ROOTS_DIRECTLY, .example = "summarize anchorpoints",
			  .description =
				  "Every anchored allocation is reached through one of these." },
			{ "staticanchorpoints", "allocations that static memory refers to directly",
			  STAGE_ROOTS, .select = select_at_roots,
			  .choice = 1 << ROOT_STATIC | ROOTS_DIRECTLY,
			  .example = "describe staticanchorpoints --sort-by bytes --limit 5",
			  .description =
				  "Static memory is the variables of the program and its libraries, and other memory outside of heaps and stacks." },
			{ "stackanchorpoints", "allocations that a stack refers to directly",
			  STAGE_ROOTS, .select = select_at_roots,
			  .choice = 1 << ROOT_STACK | ROOTS_DIRECTLY,
			  .example = "list stackanchorpoints --limit 5" },
			{ "registeranchorpoints", "allocations that a register refers to directly",
			  STAGE_ROOTS, .select = select_at_roots,
			  .choice = 1 << ROOT_REGISTER | ROOTS_DIRECTLY,
			  .example = "list registeranchorpoints" },
			{ "kernelanchorpoints", "allocations that the kernel holds for the program",
			  STAGE_REACHABILITY, .select = select_at_roots,
			  .choice = 1 << ROOT_KERNEL | ROOTS_DIRECTLY,
			  .example = "describe kernelanchorpoints",
			  .description =
				  "For example a thread's signal stack, what epoll returns, or the value of a timer. 'run', 'snap' and '-p' ask the kernel; other cores do not have this." },
			{ "threadonlyanchorpoints",
			  "allocations that a stack or register refers to directly, and that are not reachable from static memory",
			  STAGE_REACHABILITY, .select = select_at_roots,
			  .choice = THREAD_ROOTS | ROOTS_DIRECTLY | ROOTS_ONLY,
			  .example = "summarize threadonlyanchorpoints",
			  .description =
				  "Only a running function holds it: it is temporary, or about to leak." },
			{ "staticanchored", "allocations reachable from static memory",
			  STAGE_REACHABILITY, .select = select_at_roots, .choice = 1 << ROOT_STATIC,
			  .example = "summarize staticanchored" },
			{ "stackanchored", "allocations reachable from a stack", STAGE_REACHABILITY,
			  .select = select_at_roots, .choice = 1 << ROOT_STACK,
			  .example = "summarize stackanchored" },
			{ "registeranchored", "allocations reachable from a register",
			  STAGE_REACHABILITY, .select = select_at_roots,
			  .choice = 1 << ROOT_REGISTER, .example = "count registeranchored" },
			{ "kernelanchored",
			  "allocations reachable from those that the kernel holds",
			  STAGE_REACHABILITY, .select = select_at_roots, .choice = 1 << ROOT_KERNEL,
			  .example = "summarize kernelanchored" },
			{ "integeranchored",
			  "allocations whose address an interpreter keeps as an integer, and allocations reachable from these",
			  STAGE_REACHABILITY, .select = select_at_roots,
			  .choice = 1 << ROOT_INTEGER, .example = "summarize integeranchored",
			  .description =
				  "For example a Python int or a Ruby Integer, which ctypes and Fiddle use for addresses. Only allocations without other references are searched for in this way. Code that only a catch table of Ruby (rescue, ensure) refers to counts as well: its references stand at odd addresses." },
			{ "threadonlyanchored",
			  "allocations reachable only from stacks and registers",
			  STAGE_REACHABILITY, .select = select_at_roots,
			  .choice = THREAD_ROOTS | ROOTS_ONLY,
			  .example = "summarize threadonlyanchored",
			  .description =
				  "They should be freed when the running functions return; otherwise they leak." },
			{ "allocation", "the allocation that the address is in", STAGE_HEAP,
			  .arguments = "ADDRESS", .select = select_allocation,
			  .example = "show allocation 55d0c0ffee10 --ascii",
			  .description = "The address may be anywhere inside of it." },
			{ "incoming", "used allocations that refer to the one at the address",
			  STAGE_INCOMING, .arguments = "ADDRESS", .select = select_incoming,
			  .example = "list incoming 55d0c0ffee10\n"
				     "summarize incoming 55d0c0ffee10",
			  .description =
				  "A word in them is an address within it: its start or any other byte." },
			{ "exactincoming",
			  "used allocations that refer to the start of the one at the address",
			  STAGE_INCOMING, .arguments = "ADDRESS", .select = select_incoming,
			  .choice = CHOICE_EXACT, .example = "list exactincoming 55d0c0ffee10",
			  .description = "Most real references are to the start." },
			{ "outgoing", "used allocations that the one at the address refers to",
			  STAGE_GRAPH, .arguments = "ADDRESS", .select = select_outgoing,
			  .example = "list outgoing 55d0c0ffee10\n"
				     "summarize outgoing 55d0c0ffee10" },
			{ "freeoutgoing", "free allocations that the one at the address refers to",
			  STAGE_GRAPH, .arguments = "ADDRESS", .select = select_outgoing,
			  .choice = CHOICE_FREE, .example = "list freeoutgoing 55d0c0ffee10",
			  .description =
				  "References to free allocations are stale, or a use after free to come." },
			{ "chain",
			  "a chain of allocations: the one at the address, then the one that its word at the offset points into, and so on",
			  STAGE_HEAP, .arguments = "ADDRESS OFFSET", .select = select_chain,
			  .is_ordered = true, .example = "list chain 55d0c0ffee10 8 --limit 10",
			  .description =
				  "This follows a linked list if the offset is that of its next pointer. It ends where the target is not a used allocation, and at a cycle, which is reported." },
			{ "reversechain",
			  "a chain backwards: the one at the address, then the one whose word at the source offset points to its target offset, and so on",
			  STAGE_INCOMING, .arguments = "ADDRESS SOURCE_OFFSET TARGET_OFFSET",
			  .select = select_chain, .is_ordered = true, .choice = CHOICE_BACKWARDS,
			  .example = "list reversechain 55d0c0ffee10 8 0 --limit 10", .description = "From an element of a linked list back to its predecessors. It ends where no allocation, or more than one, refers to the last one in that way, and at a cycle." },
			{ "duplicates",
			  "used allocations with the same contents as one at a lower address",
			  STAGE_PATTERNS, .select = select_waste,
			  .example = "summarize duplicates --sort-by bytes\n"
				     "explain duplicates --limit 3",
			  .description =
				  "The first of several equal ones is not a member. 'waste' shows how many bytes they take." },
			{ "lostcount",
			  "allocations whose count of references is more than the holders",
			  STAGE_LOST_COUNTS, .select = select_lostcount,
			  .example = "summarize lostcount\n"
				     "describe lostcount --limit 3",
			  .description =
				  "Somebody took a reference that is gone, so they are never freed: std::shared_ptr, GObject, objects of Python and PHP, and, with debug information, Rust's Arc and Rc and classes with a member such as ref_count. Every word in use that may be a holder's counts as one." },
			{ "zeros", "used allocations that hold nothing but zeros", STAGE_PATTERNS,
			  .select = select_waste, .choice = CHOICE_ZEROS,
			  .example = "list zeros --sort-by bytes --limit 3",
			  .description = "Spare capacity of containers does not count." },
			{ DERIVED_SET, "the members that --set-operation stored", STAGE_HEAP,
			  .select = select_named,
			  .example = "count leaked --set-operation assign\n"
				     "count derived",
			  .description =
				  "'--set-operation assign' stores the members of any set, '--set-operation subtract' removes them. 'let' does the same with names of your own." },
			{ NEW_SET, "allocations in use that are not in the oldest core", STAGE_HEAP,
			  .select = select_named,
			  .example = "diff older.core\n"
				     "summarize new\n"
				     "explain new --sort-by bytes --limit 3",
			  .description =
				  "Available after 'diff' compared this core with older ones of the same process. An allocation that was freed and reused for the same size and class looks as if it had survived." },
			{ SURVIVED_SET, "allocations in use in all cores that were compared",
			  STAGE_HEAP, .select = select_named,
			  .example = "diff older.core\n"
				     "count survived",
			  .description =
				  "Available after 'diff' compared this core with older ones of the same process." },
			{ "stacks", "the stacks of threads", STAGE_PROGRAM,
			  .ranges = &range_kind_stacks, .example = "list stacks" },
			{ "threads", "threads, each as its stack", STAGE_DEBUG,
			  .ranges = &range_kind_threads, .example = "describe threads" },
			{ "fibers", "fibers of Crystal and Ruby, each as its stack", STAGE_FIBERS,
			  .ranges = &range_kind_fibers,
			  .example = "list fibers\n"
				     "describe fibers",
			  .description =
				  "Threads that a program switches between by itself. 'describe' shows the calls of each." },
			{ "modules", "the program and its libraries", STAGE_PROGRAM,
			  .ranges = &range_kind_modules, .example = "list modules" },
			{ "arenas", "the arenas of the allocators", STAGE_HEAP,
			  .ranges = &range_kind_arenas,
			  .example = "list arenas\n"
				     "summarize arenas",
			  .description =
				  "Memory that an allocator got from the system and hands out in pieces." },
			{ "writable", "memory that can be written", STAGE_PROGRAM,
			  .ranges = &range_kind_writable, .example = "summarize writable" },
			{ "readonly", "memory that can be read, but not written or executed",
			  STAGE_PROGRAM, .ranges = &range_kind_readonly,
			  .example = "list readonly --sort-by bytes --limit 5" },
			{ "rxonly", "memory that can be read and executed, but not written",
			  STAGE_PROGRAM, .ranges = &range_kind_rxonly, .example = "list rxonly",
			  .description = "Code, mostly." },
			{ "inaccessible",
			  "memory that was mapped without any rights, as guards of stacks",
			  STAGE_PROGRAM, .ranges = &range_kind_inaccessible,
			  .example = "list inaccessible",
			  .description =
				  "Cores from the kernel mark such memory. gcore writes it as if it were readable." },
			{ "maps", "all mapped memory, by address", STAGE_PROGRAM,
			  .ranges = &range_kind_maps, .example = "list maps" },
			{ "roots", "memory outside of the heaps that is searched for pointers",
			  STAGE_ROOTS, .ranges = &range_kind_roots, .example = "summarize roots",
			  .description = "What it refers to is anchored." },
			{ "pointers", "aligned words, anywhere in memory, of that value",
			  STAGE_HEAP, .arguments = "ADDRESS", .ranges = &range_kind_pointers,
			  .example = "enumerate pointers 55d0c0ffee10\n"
				     "describe pointers 55d0c0ffee10 --skip free",
			  .description =
				  "In allocations, stacks or static memory; '--skip' leaves some of these out." },
			{ "rangerefs",
			  "aligned words, anywhere in memory, from START up to END, which is excluded",
			  STAGE_HEAP, .arguments = "START END", .ranges = &range_kind_rangerefs,
			  .example = "describe rangerefs 55d0c0ffee10 55d0c0ffee18",
			  .description =
				  "Like 'pointers', but for a range of values: for example all pointers into one allocation." },
			{ "relrefs",
			  "4-byte relative references to the address, anywhere in memory, as in code",
			  STAGE_HEAP, .arguments = "ADDRESS", .ranges = &range_kind_relrefs,
			  .example = "enumerate relrefs 55d0c0ffee10",
			  .description =
				  "Code refers to variables and functions by a signed distance from the byte after the reference." },
			{ "iseqs",
			  "compiled methods, blocks and bodies of classes of Ruby, functions of PHP",
			  STAGE_OBJECTS, .select = select_code, .summary_of = SUMMARY_OF_CODE,
			  .example = "summarize iseqs\n"
				     "list iseqs --sort-by bytes --limit 10",
			  .description =
				  "'summarize' counts them by class and path, and by label: numbers in labels are written as N, so methods that a program generates without end are one line. Bytes are those of the iseq and of all that it is made of." },
			{ "signatures", "the targets of first words of used allocations",
			  STAGE_CLASSES, .ranges = &range_kind_signatures,
			  .example = "summarize signatures\n"
				     "list signatures" },
		};

const struct set *set_at(size_t number)
{
	return number < COUNT_OF(sets) ? &sets[number] : NULL;
}

size_t set_argument_count(const struct set *set)
{
	const char *word = set->arguments;
	size_t count = 0;

	for (; word; word = strchr(word + 1, ' '))
		count++;
	return count;
}

/* The argument's name says so. */
bool set_argument_is_offset(const struct set *set, size_t number)
{
	const char *name = set->arguments;
	size_t length;

	while (number-- > 0)
		name = strchr(name, ' ') + 1;
	length = strcspn(name, " ");
	return length >= strlen("OFFSET") &&
	       strncmp(name + length - strlen("OFFSET"), "OFFSET", strlen("OFFSET")) == 0;
}

/* The name of a set: those of the table first, then the user's. */
static const char *set_name(const void *data, size_t number)
{
	const struct analysis *analysis = data;
	const size_t count = COUNT_OF(sets);

	if (number < count)
		return sets[number].name;
	return analysis ? named_sets_name(analysis_named_sets(analysis), number - count) : NULL;
}

const struct set *set_find(const char *name)
{
	const struct set *set;

	for (size_t i = 0; (set = set_at(i)) != NULL; i++)
		if (strcmp(set->name, name) == 0)
			return set;
	return NULL;
}

/* An address names a place, to 'describe' and 'explain', and no set. */
static struct error *no_set(const char *name)
{
	uint64_t address;
	struct error *error = parse_address(name, &address);

	if (error) {
		error_destroy(error);
		return error_unknown("set", name, NULL);
	}
	return error_create(
		ERROR_USAGE,
		"'%s' is an address, not a set; the set of what is there is 'allocation %" PRIx64
		"'",
		name, address);
}

struct error *set_unknown(const struct analysis *analysis, const char *name)
{
	const char *nearest = nearest_word(name, set_name, analysis);

	if (strcmp(name, "gone") == 0)
		return error_create(
			ERROR_USAGE,
			"this core does not have what is gone: open the older core and use it there");
	return nearest ? error_unknown("set", name, nearest) : no_set(name);
}
