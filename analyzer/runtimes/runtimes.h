/*
 * The runtimes that a process has, and what they know together.
 */
#pragma once

#include "analyzer/runtimes/runtime.h"

struct runtimes;

/* Find those of the kinds, an array with NULL at the end, and their fibers. */
struct error *runtimes_create(const struct runtime *const *kinds,
			      const struct runtime_context *context, struct runtimes **ret);
void runtimes_destroy(struct runtimes *list);
DEFINE_CLEANUP(runtimes_destroy, struct runtimes *)

size_t runtime_count(const struct runtimes *list);
const struct runtime *runtime_at(const struct runtimes *list, size_t number);

/* The integers of the number-th; NULL: it is not there, or has none. */
const struct integer_encoding *runtimes_integer(const struct runtimes *list, size_t number);
bool runtimes_have_integers(const struct runtimes *list);

/* Memory in which a collector, among them, follows references at odd addresses, or NULL. */
const char *runtimes_packed(const struct runtimes *list);

/* True if one of its modules is loaded. */
bool runtime_is_loaded(const struct runtime *runtime, const struct program *program);

/* True if it is a module of a language whose programs reach objects by names. */
bool runtimes_have_module(const struct runtimes *list, const struct module *module);

/* True if the path is of a language's own files, by its name or a folder's. */
bool runtimes_know_path(const struct runtime *const *kinds, const char *path);

/* The memory that the number-th has for itself; *ret_count may be 0. */
const struct named_range *runtimes_memory(const struct runtimes *list, size_t number,
					  size_t *ret_count);

/* Its objects; NULL: none are known. */
struct object_space *runtimes_space(const struct runtimes *list, const struct runtime *runtime);

const struct fibers *runtimes_fibers(const struct runtimes *list);

/* Learn the objects of all: without, there are none. After an error it may be called again. */
struct error *runtimes_find_objects(struct runtimes *list, struct debug *debug);

/* True if any runtime has objects. */
bool runtimes_have_objects(const struct runtimes *list);

/* The space that the object is in; NULL: it is none. list may be NULL. */
struct object_space *runtimes_space_of(const struct runtimes *list, allocation_id id);

/*
 * True if any allocation, or this one, is certainly an object, and so has no pattern. list may be
 * NULL.
 */
bool runtimes_have_certain(const struct runtimes *list);
bool runtimes_are_certain(const struct runtimes *list, allocation_id id);

/*
 * True if any runtime has links in the heap, see is_link() and find_unused(); or outside of it,
 * too; below: if the word is a link, or unused. list may be NULL.
 */
bool runtimes_have_links(const struct runtimes *list);
bool runtimes_have_links_outside(const struct runtimes *list);
bool runtimes_is_link(const struct runtimes *list, allocation_id source, allocation_id target,
		      uint64_t word, uint64_t place);

/* The actual target of the word, see resolve(); NO_ALLOCATION: its address is the target. */
allocation_id runtimes_resolve(const struct runtimes *list, allocation_id source, uint64_t word);

/* The object that the block is part of, as far as its runtime knows; or NO_ALLOCATION. */
allocation_id runtimes_whole(const struct runtimes *list, allocation_id block);

/* True if the object is freed by its reference count; sets the count. */
bool runtimes_count_of(const struct runtimes *list, allocation_id id, struct object_liveness *ret);

/* True if all that its count counts are words with its address; sets count and address. */
bool runtimes_count_words(const struct runtimes *list, allocation_id id,
			  struct object_liveness *ret);

/* True if it is freed so, and no collector frees cycles of such objects. */
bool runtimes_keep_cycle(const struct runtimes *list, allocation_id id);

/* True if the object's runtime has ended, and left it to the system. */
bool runtimes_have_left(const struct runtimes *list, allocation_id id);

/* Why a runtime lost the allocation, and the runtime's name; NULL: none is known to have. */
const char *runtimes_known_leak(const struct runtimes *list, allocation_id id,
				const char **ret_name);

/*
 * The name of a runtime in the middle of a collection, or NULL; and a note on what keeps a
 * collector of cycles from freeing garbage, empty if nothing is known to.
 */
const char *runtimes_collecting(const struct runtimes *list, char *ret_note, size_t size);

/* Say how the object is kept, as what follows "it is". False: that is not known. */
bool runtimes_tell(const struct runtimes *list, allocation_id id, char *ret, size_t size);

/*
 * True if the executable is a program of its own that has loaded one of the languages as a library,
 * and that language's objects are known.
 */
bool runtimes_are_embedded(const struct runtimes *list, const struct program *program,
			   const struct module *executable);

/* See the slots of those names. All numbers of classes are of one of the runtimes. */
uint64_t runtimes_class_of(const struct runtimes *list, allocation_id id);
bool runtimes_have_class(const struct runtimes *list, uint64_t number);
/*
 * The use of the runtime's page around address, where no allocator knows it, as "V8's heap"; NULL:
 * it is in none.
 */
const char *runtimes_page_use(const struct runtimes *list, const struct image *image,
			      uint64_t address);

/* True if it is the number of parts; below: which part of an object the allocation is. */
bool runtimes_is_part(const struct runtimes *list, uint64_t number);
bool runtimes_part_of(const struct runtimes *list, allocation_id id, struct object_part *ret);
size_t runtimes_class_count(const struct runtimes *list);
const char *runtimes_class_name(const struct runtimes *list, uint64_t number,
				enum class_name_kind *ret_kind);
bool runtimes_visit_bases(const struct runtimes *list, uint64_t number,
			  bool (*visit)(void *data, const char *name), void *data);

/* Visit the compiled code of all, see the slot; nothing where there is none. */
struct error *runtimes_visit_code(const struct runtimes *list, object_code_visitor *visit,
				  void *data);

/* True if the function or source of that name is a runtime's own, rather than the program's. */
bool runtimes_own_code(const struct runtimes *list, const char *name);

/* True if a loaded runtime may know the calls of threads. */
bool runtimes_have_frames(const struct runtime *const *kinds, const struct program *program);

/* Visit the calls of the thread in the number-th runtime's language, see its slot. */
struct error *runtimes_visit_frames(const struct runtimes *list, size_t number, uint32_t thread,
				    const struct frame_visitor *visitor);

/* Visit the tasks of the number-th runtime's language, see its slot. */
struct error *runtimes_visit_tasks(const struct runtimes *list, size_t number,
				   const struct task_visitor *visitor);

/* The exception of the thread in the number-th runtime's language, see its slot. */
struct error *runtimes_find_exception(const struct runtimes *list, size_t number, uint32_t thread,
				      const struct frame_visitor *visitor,
				      struct runtime_exception *ret);

/* Visit the frames of a waiting fiber. */
struct error *runtimes_visit_fiber_frames(const struct runtimes *list, const struct fiber *fiber,
					  const struct frame_visitor *visitor);

/* The member of the object at that offset; NULL: not known. */
const char *runtimes_field_name(const struct runtimes *list, allocation_id id, uint64_t offset);

/*
 * True if the object has members at fixed offsets, which debug information may describe; below: the
 * name of its class, which is that of a type there; NULL: unknown. list may be NULL.
 */
bool runtimes_have_fields(const struct runtimes *list, allocation_id id);
const char *runtimes_type_name(const struct runtimes *list, allocation_id id);

/* Visit what the object has by name or key, see the slot. */
struct error *runtimes_visit_members(const struct runtimes *list, allocation_id id,
				     bool with_content,
				     bool (*visit)(void *data, const struct runtime_member *member),
				     void *data);

/* True if the object has members by name or key. */
bool runtimes_have_members(const struct runtimes *list, allocation_id id);

/* The functions of which one made each object of the class, see the slot find_makers. */
size_t runtimes_find_makers(const struct runtimes *list, uint64_t number,
			    const char *ret[static MOST_OBJECT_MAKERS]);

/* The text that the object is; false: it is none. */
bool runtimes_text(const struct runtimes *list, allocation_id id, uint64_t *ret_start,
		   uint64_t *ret_size);

/* Calls that allocated, as the number-th noted them, and their owner; NULL: it notes none. */
const struct noting *runtimes_noting(const struct runtimes *list, size_t number, void **ret_owner);
