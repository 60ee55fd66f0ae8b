/*
 * The contract of a language's runtime: what is known of a program's objects beyond what their
 * allocator knows.
 *
 * A runtime is a folder of analyzer/runtimes/ with a file that defines a struct runtime named after
 * the file; its classifiers are files of the same folder. The build collects both. Of each runtime
 * that a process has there is one object_space, which a runtime that needs more embeds as the first
 * member of its own.
 *
 * A class is a number that stands as the signature of its objects, beside addresses of vtables: the
 * address of the class itself, or an index below all addresses. Index 0 is none.
 */
#pragma once

#include "analyzer/base/budget.h"
#include "analyzer/capture/teardown.h"
#include "analyzer/heap/heaps.h"
#include "analyzer/heap/noting.h"
#include "analyzer/heap/unused.h"
#include "analyzer/image/view.h"
#include "analyzer/program/debug/debug.h"
#include "analyzer/program/debug/names.h"
#include "analyzer/runtimes/fibers.h"
#include "analyzer/runtimes/object_classes.h"

struct runtime;

/* The inputs of a runtime; all are borrowed and outlive the object space. */
struct runtime_context {
	const struct image *image;
	const struct program *program;
	const struct allocation_index *index;
	struct memory_account *account;
	const struct heaps *heaps; /* which the index is of */
};

/* Memory that a runtime has for itself, in no heap. */
struct named_range {
	struct memory_range range;
	const char *name; /* "Java's heap" */
};

/* The name of an object that needs no other object: "sys", "$users". */
struct object_name {
	allocation_id id;
	const char *text;
};

struct object_space {
	const struct runtime *runtime;
	union {
		struct runtime_context context;
		struct { /* the same */
			const struct image *image;
			const struct program *program;
			const struct allocation_index *index;
			struct memory_account *account;
			const struct heaps *heaps;
		};
	};
	struct object_classes classes;
	struct name_pool texts;		  /* of names, which live as long as the space */
	ARRAY(struct object_name) names;  /* of the objects that have one, for paths */
	ARRAY(struct named_range) ranges; /* of its own memory, by address; they do not overlap */
	struct budget steps;		  /* of visits of links: damage may have all share theirs */
	uint64_t tag_bits; /* of words, beside an address; set by open() or find_objects() */
	bool has_objects;  /* find_objects() found some */
	bool has_ended;	   /* the program left them to the system: none is leaked by it */
};

/* How a runtime keeps an object. */
struct object_liveness {
	bool is_immortal; /* it is never freed */
	bool is_marked;	  /* by the last collection */
	bool has_count;	  /* of references: */
	uint64_t count;
	uint64_t address; /* with a count: what such a reference is */
	/* The place that its collector moved it to, and the class there; 0: it did not. */
	uint64_t moved_to, moved_class;
};

/* An allocation without a class, which is known by the member of a class that holds it. */
struct object_part {
	uint64_t number;      /* as that of a class */
	allocation_id holder; /* by way of which the object has it */
	uint64_t count, of;   /* so many of what members like that hold are alike */
};

/* The integers of a language, in which programs keep addresses. */
struct integer_encoding {
	const char *name; /* "Python int" */
	/*
	 * The addresses that count words in a row stand for, one for each, 0 for none: as many ways
	 * as there are, NULL behind the last.
	 */
	void (*decode[3])(const uint64_t *words, size_t count, uint64_t *ret);
	/* True if the words around place confirm the decoded address. */
	bool (*check)(const struct image *image, uint64_t place, uint64_t address);
};

/* Pages that objects are in, and not in a heap that an allocator knows: for the bill. */
struct object_pages {
	const char *name; /* "Ruby's objects" */
	/* Possible alignments of pages, powers of two, ended by 0. */
	uint64_t alignment[3];
	/* The size of the page at address; 0: none is there. */
	uint64_t (*measure)(const struct image *image, uint64_t address);
	/* Optional: what the page at address is for, instead of the name. */
	const char *(*use)(const struct image *image, uint64_t address);
	/*
	 * Optional, with use(): the bytes of objects in the page at address, and its room for them;
	 * false: that is not known.
	 */
	bool (*fill)(const struct image *image, uint64_t address, uint64_t *ret_used,
		     uint64_t *ret_room);
	/* One page alone counts; else most of a mapping must be such. */
	bool is_certain;
};

/* Gets ranges of memory, which may overlap or be absent; an error ends the visit. */
struct structure_visitor {
	void *data;
	program_range_visitor *number; /* of counts, lengths, flags */
	program_range_visitor *name;   /* of texts */
	program_range_visitor *text;   /* of those that are values; NULL: nobody asks */
};

/* Code that a program compiled: a method, a block, the body of a class. */
struct object_code {
	allocation_id id;
	/* These live as long as the space; NULL: not known. */
	const char *owner; /* the class or module whose method it is, or is a part of */
	const char *path;  /* of its source */
	const char *label; /* its name there */
	uint64_t line;	   /* 0: not known */
	uint64_t bytes;	   /* of it and of what it is made of, where it is no object */
};

enum { MOST_OBJECT_MAKERS = 3 }; /* that are shown of a class */

/* An error ends the visit. */
typedef struct error *object_code_visitor(void *data, const struct object_code *code);

/* A step from an object to another, and what walks and writes such, see object_links.h. */
struct object_link;
struct object_walk;
struct object_naming;
struct object_path;
struct object_step;
struct object_value; /* see object_values.h */

/* True: the visit is over. */
typedef bool object_link_visitor(void *data, const struct object_link *link);

/* A call of a function in the language. Texts are untrusted. */
struct runtime_frame {
	uint64_t number; /* 0 is the innermost */
	/* Why neither this one nor those further out are known; then nothing else is. Or NULL. */
	const char *damage;
	const char *function, *file; /* NULL: not known */
	uint64_t line;		     /* 0: not known */
	const char *kind;	     /* kind of function, such as "generator"; or NULL */
};

/* A variable of the function of the frame that was visited last. Texts are untrusted. */
struct runtime_local {
	const char *name;
	const char *class_name;
	uint64_t address;  /* of the value */
	const char *value; /* in short; NULL: class and address say it all */
};

/* A member of an object, by a name or key. Texts are untrusted. */
struct runtime_member {
	uint64_t place;	  /* where the value stands, in the object or elsewhere */
	const char *name; /* NULL: it has none */
	const char *class_name;
	uint64_t address;  /* of what the value refers to; 0: nothing */
	const char *value; /* in short, contents of memory; NULL: class and address say it all */
};

/* Gets the calls of a thread, and what is in them; all is borrowed until it returns. */
struct frame_visitor {
	void *data;
	void (*frame)(void *data, const struct runtime_frame *frame);
	void (*local)(void *data, const struct runtime_local *local); /* NULL: not asked for */
};

/* A task that has not ended, as of an event loop. Texts are untrusted and borrowed. */
struct runtime_task {
	const char *kind; /* NULL: "Task" */
	allocation_id id;
	uint64_t address;
	const char *name; /* NULL: it has none */
	const char *class_name;
	bool is_running;
	uint64_t awaited; /* the object that its innermost call waits for; 0: none is known */
	const char *awaited_class, *awaited_name;
};

/* Gets each task, then its calls, then their end; errors end the visit. */
struct task_visitor {
	struct frame_visitor frames;
	struct error *(*task)(void *data, const struct runtime_task *task);
	struct error *(*end)(void *data);
};

enum { MOST_RAISING_CALLS = 16 };

/* An exception of a language. Texts are untrusted. */
struct runtime_exception {
	const char *state;	/* "while handling", "panic"; NULL: there is no exception */
	const char *class_name; /* lives as long as the space; NULL: it has none */
	char message[256];
	/* Addresses that the calls that raised it return to, of compiled code; 0: no more. */
	uint64_t calls[MOST_RAISING_CALLS];
};

/* The stacks that a runtime switches between. */
struct runtime_fibers {
	/* Add the stacks that it switches between, before there are roots. */
	struct error *(*find_fibers)(struct object_space *space, struct fibers *fibers);
	/* The registers that a waiting fiber saved; false if they are not there. */
	bool (*fiber_registers)(const struct image *image, const struct fiber *fiber,
				struct frame_state *ret);
	/* Optional: the calls of one of its fibers that waits. */
	struct error *(*visit_fiber_frames)(struct object_space *space, const struct fiber *fiber,
					    const struct frame_visitor *visitor);
};

/* The calls in a language. */
struct runtime_calls {
	/*
	 * Optional: visit the calls in the language that the thread of that index is in, the
	 * innermost first. None: the thread does not run it, or they are not known. Called only if
	 * has_objects.
	 */
	struct error *(*visit_frames)(struct object_space *space, uint32_t thread,
				      const struct frame_visitor *visitor);
	/*
	 * Optional: the exception that the thread raised or handles. With visit_frames(), called
	 * behind that and only if has_objects. Visits the call that raised it, if that is known.
	 */
	struct error *(*find_exception)(struct object_space *space, uint32_t thread,
					const struct frame_visitor *visitor,
					struct runtime_exception *ret);
	/*
	 * Optional: visit tasks that wait beside threads, by address, with their calls. Called only
	 * if has_objects.
	 */
	struct error *(*visit_tasks)(struct object_space *space,
				     const struct task_visitor *visitor);
	/* Optional: visit all compiled code, by address. */
	struct error *(*visit_code)(struct object_space *space, object_code_visitor *visit,
				    void *data);
};

/* How programs get from object to object, by names and links: see object_links.h. */
struct runtime_links {
	/*
	 * Name the objects that programs reach by a name alone that lasts: modules, global
	 * variables. Called only if has_objects.
	 */
	struct error *(*find_globals)(struct object_naming *naming);
	/*
	 * Optional, called behind find_globals() with what that found: name those that only
	 * variables of running functions refer to.
	 */
	struct error *(*find_locals)(struct object_naming *naming);
	/*
	 * Walk the links of an object, also by way of blocks that it has for itself, some perhaps
	 * twice.
	 */
	void (*walk_links)(struct object_walk *walk, allocation_id id);
	/* Optional: what links to the object have as target; NULL: its address. */
	uint64_t (*target_of)(const struct object_space *space, allocation_id id);
	/* Optional: whether paths do not take the link. */
	bool (*skips)(struct object_space *space, struct view *view,
		      const struct object_link *link);
	/* How each kind of link is written. */
	const struct object_step *steps;
	/*
	 * Optional: write what precedes the text of a step, or a step without text. False: it is
	 * another link's.
	 */
	bool (*tell_step)(struct object_path *path, const struct object_link *link);
	/* Optional: the object that the block is part of, or NO_ALLOCATION. */
	allocation_id (*whole)(const struct object_space *space, allocation_id block);
	/*
	 * Optional: what a reference, the target of the link, leads to, where that is an object;
	 * 0: it is no reference, or leads to none.
	 */
	uint64_t (*referent)(struct object_space *space, struct view *view,
			     const struct object_link *link);
	/*
	 * Optional, once find_globals() was called: what the target of the link says, or with a
	 * target alone an object; false: no value is there. ret is all zeros but for its text.
	 */
	bool (*read_value)(struct object_space *space, struct view *view,
			   const struct object_link *link, struct object_value *ret);
};

/* The layout of the objects of a compiled language. */
struct runtime_layout {
	/* Optional: whether the number of a class is that of parts; what part the allocation is. */
	bool (*is_part)(const struct object_space *space, uint64_t number);
	bool (*part_of)(const struct object_space *space, allocation_id id,
			struct object_part *ret);
	/*
	 * The member at that offset of the class's objects, "position.x" of one that is
	 * within another; NULL: not known. Lives as long as the space.
	 */
	const char *(*field_name)(struct object_space *space, uint64_t number, uint64_t offset);
	/*
	 * Optional: the functions of which one made each object of the class, as "make_order() at
	 * shop.cr:12"; returns how many, 0 if there are more or not all are known. They live as
	 * long as the space.
	 */
	size_t (*find_makers)(struct object_space *space, uint64_t number,
			      const char *ret[static MOST_OBJECT_MAKERS]);
};

/*
 * A language states what it has: `open`, `find_objects` and what describes these, and the parts for
 * fibers, calls, links and layouts that apply.
 */
struct runtime {
	const char *name; /* Required. */

	/*
	 * Optional: what the name of a file that only its programs load, or
	 * of a folder on the file's path, begins with, as "libruby"; of several, with | between
	 * them. One that ends in $ is a whole name, and one that begins with = what such a file
	 * exports, whatever it is called. NULL: any program may have it, and open() tells.
	 */
	const char *modules;

	/*
	 * Optional: how the names of its own functions and their sources begin, also within a
	 * program, with | between them.
	 */
	const char *own_code;

	/* The size of its structure, which begins with an object_space; 0: that is all. */
	size_t space_size;
	/*
	 * Optional: find it in the dump, without debug information. *ret stays false if the process
	 * does not have it.
	 */
	struct error *(*open)(struct object_space *space, bool *ret);
	/* Optional: release all that the space has. Called also where no objects were found. */
	void (*release)(struct object_space *space);

	/*
	 * Optional: learn which allocations are objects, and of what class, in space->classes.
	 * Leaves has_objects false if none are. After an error it may be called again.
	 */
	struct error *(*find_objects)(struct object_space *space, struct debug *debug);
	/* Its objects are nothing else: they are of no pattern. */
	bool is_certain;
	/*
	 * For cores without contents (analyzer/slim): visit what is known of it by words that are
	 * no addresses, and the names that paths, calls and classes have. Values of the program's
	 * are none of it. Called behind find_objects(). NULL: such a core cannot have its objects.
	 */
	struct error *(*visit_structure)(struct object_space *space,
					 const struct structure_visitor *visitor);
	/*
	 * They are parts of regions, which are freed as a whole whatever refers to them: those of a
	 * class are held by one root of its name, and by nothing else.
	 */
	bool has_regions;
	/*
	 * Required with find_objects(), unless these name their classes: the name of a class, which
	 * is asked for once. NULL only if memory is short. Lives as long as the space.
	 */
	const char *(*class_name)(struct object_space *space, uint64_t number,
				  enum class_name_kind *ret_kind);

	/*
	 * Optional: call visit for what the class is derived from and what it includes, some
	 * perhaps twice, until it returns true; returns whether it did.
	 */
	bool (*visit_bases)(struct object_space *space, uint64_t number,
			    bool (*visit)(void *data, const char *name), void *data);
	/* Optional: the text that the object is; false: it is none. */
	bool (*text)(const struct object_space *space, allocation_id id, uint64_t *ret_start,
		     uint64_t *ret_size);
	/*
	 * Optional: whether the word at that offset of the object may be a reference. Others are
	 * tainted, see patterns.h. NULL: all may.
	 */
	bool (*may_refer)(const struct object_space *space, allocation_id id, uint64_t offset);
	/*
	 * Optional: whether the word at place, in the allocation source or outside of all, is of
	 * the runtime's own bookkeeping, or left over, though it is an address in target: then it
	 * is no reference.
	 * find_objects() is called early, without debug information, and this only if it finds
	 * some; several threads may ask at once.
	 */
	bool (*is_link)(const struct object_space *space, allocation_id source,
			allocation_id target, uint64_t word, uint64_t place);
	/*
	 * Optional, with is_link(), asked likewise: what the word of source refers to, though it is
	 * not an address in it. NO_ALLOCATION: nothing else than what it is an address in.
	 */
	allocation_id (*resolve)(const struct object_space *space, allocation_id source,
				 uint64_t word);
	/*
	 * Optional: add words that hold nothing: room of containers that is not used, and weak
	 * references. Called early, behind find_objects() only if there is is_link().
	 */
	struct error *(*find_unused)(struct object_space *space, struct unused *ret);
	/*
	 * Optional, with is_link(): whether its collector frees the allocation, an object or a part
	 * of one, once nothing refers to it. NULL: its allocator knows, or it counts references.
	 */
	bool (*is_collected)(const struct object_space *space, allocation_id id);
	/*
	 * Objects with a count are freed when all references are gone, and cycles of them by a
	 * collector, unless it keeps them: then these are leaked. Needs is_link().
	 */
	bool is_counted, keeps_cycles;
	/*
	 * Optional: whether the core is from the middle of a collection; and, with is_counted, a
	 * note on what keeps the collector from freeing garbage, which is empty at first.
	 */
	bool (*is_collecting)(const struct object_space *space, char *ret_note, size_t size);
	/* Optional: how the object is kept. False: that is not known. */
	bool (*liveness)(const struct object_space *space, allocation_id id,
			 struct object_liveness *ret);
	/*
	 * With a count: each holder that is counted has the address, in a word, so that a count
	 * which is more than these words is lost.
	 */
	bool counts_words;
	/*
	 * Optional: what its collector follows references in that stand at odd addresses, as it is
	 * packed: "catch table".
	 */
	const char *packed;

	/*
	 * Optional: visit what the object has by name or key, until visit() returns false. Keys
	 * that are contents of memory are left out without with_content.
	 */
	struct error *(*visit_members)(
		struct object_space *space, allocation_id id, bool with_content,
		bool (*visit)(void *data, const struct runtime_member *member), void *data);
	/* Optional. */
	const struct runtime_fibers *fibers;
	const struct runtime_calls *calls;
	const struct runtime_links *links;
	const struct runtime_layout *layout;
	const struct integer_encoding *integer; /* Optional. */
	const struct object_pages *pages;	/* Optional. */
	const struct noting *noting; /* Optional: calls that allocated; the owner is the space. */
	/* Optional: a note on what limits the trust in what is leaked, where it is loaded,
	 * and its objects are not known. */
	const char *leaks_note;
	/*
	 * Optional: why the runtime itself lost the allocation, which no program can mend: "what
	 * its interpreter held when it was freed". NULL: nothing is known. Lives for ever.
	 */
	const char *(*known_leak)(struct object_space *space, allocation_id id);
	/* Optional: where it gives its objects' pages back before a process ends. */
	struct teardown teardown;
};

/* The number of the object's class; 0: it is none. */
static inline uint64_t object_class_of(const struct object_space *space, allocation_id id)
{
	const struct object_class *class = object_classes_of(&space->classes, id);

	return class ? class->number : 0;
}

/* The name of the class of that number; NULL if memory is short. */
const char *object_class_name(struct object_space *space, uint64_t number,
			      enum class_name_kind *ret_kind);
/* Likewise of the object's class. */
const char *object_class_name_at(struct object_space *space, allocation_id id);

/*
 * Declare the functions of the slots of a contract that a language in several files fills:
 * PERL_SLOTS is perl, is_link, and so on for perl_is_link(); FILL_SLOTS(PERL_SLOTS) fills them.
 */
#define DECLARE_SLOTS(contract, ...) RESCAN(DECLARE_STEP(contract, __VA_ARGS__))
#define DECLARE_STEP(contract, language, first, ...)                         \
	__typeof__(*((const struct contract *)0)->first) language##_##first; \
	__VA_OPT__(DECLARE_NEXT PARENTHESES(contract, language, __VA_ARGS__))
#define DECLARE_NEXT() DECLARE_STEP

extern const struct runtime *const runtime_kinds[]; /* NULL at the end */
