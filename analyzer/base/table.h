/*
 * Typed hash tables, in memory that is counted and limited (memory.h).
 *
 *	HASH_TABLE(struct total) totals = { .memory.account = account };
 *
 *	total = table_find(&totals, size, item, item->size == size);
 *	if (!total)
 *		error = table_append(&totals, size, (struct total){ size });
 *
 * A table is an array (array.h) whose items are found by a key: a number that equal items share,
 * such as an address or a hash of a text. The items are totals.items[0] to
 * totals.items[totals.count - 1], in the order in which they were added; they may move when one is
 * added. Once they are sorted, nothing is found any more.
 *
 * Beside them stand slots of 8 bytes: the upper half of the key's hash, and the item's number plus
 * 1. The highest bits of the hash say where a search begins, and it goes on slot by slot up to an
 * empty one. At least a quarter of the slots is empty.
 *
 * Keys come from a dump, whose maker could choose those that a known hash puts into one slot. So
 *the key is multiplied by an odd number that they cannot know: then few of any keys share the
 *highest bits (Dietzfelbinger et al., 1997). These are folded into the lower ones and multiplied
 *once more, so that keys at even distances do not fill neighbouring slots.
 */
#pragma once

#include "analyzer/base/array.h"

struct table_slot {
	uint32_t hash;
	uint32_t number; /* plus 1; 0: empty */
};

struct table_slots {
	union {
		struct memory memory;
		struct table_slot *list;
	};
	uint64_t factor;    /* of the hash */
	unsigned int shift; /* of a hash, to its slot */
};

#define HASH_TABLE(type)                  \
	struct {                          \
		ARRAY(type);              \
		struct table_slots slots; \
	}

/* An odd number, the same in all of a process's life, drawn by the kernel. */
uint64_t secret_factor(void);

static inline uint32_t secret_hash(uint64_t key, uint64_t factor)
{
	uint64_t mixed = key * factor;

	return (uint32_t)((mixed ^ mixed >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

/* The item of this key for which is_same, an expression that reads item, is true; else NULL. */
#define table_find(table, key, item, is_same)                                            \
	({                                                                               \
		__auto_type table_ = (table);                                            \
		const struct table_slots *slots_ = &table_->slots;                       \
		uint32_t hash_ = secret_hash((key), slots_->factor);                     \
		size_t place_ = table_->count ? hash_ >> slots_->shift : 0;              \
		__typeof__(*table_->items) *item = NULL;                                 \
                                                                                         \
		while (table_->count) {                                                  \
			struct table_slot slot_ = slots_->list[place_];                  \
                                                                                         \
			item = slot_.number ? table_->items + (slot_.number - 1) : NULL; \
			if (!item || (slot_.hash == hash_ && (is_same)))                 \
				break;                                                   \
			place_ = (place_ + 1) & (UINT32_MAX >> slots_->shift);           \
		}                                                                        \
		item;                                                                    \
	})

/* Add an item that is not in the table yet: NULL, or the error, and the table as it was. */
#define table_append(table, key, ...)                                                          \
	({                                                                                     \
		__auto_type table_ = (table);                                                  \
		struct error *table_error_ = array_append(table_, __VA_ARGS__);                \
                                                                                               \
		if (!table_error_) {                                                           \
			table_error_ = table_slots_add(&table_->slots, table_->memory.account, \
						       (key), table_->count);                  \
			table_->count -= table_error_ != NULL;                                 \
		}                                                                              \
		table_error_;                                                                  \
	})

/* The item of this key, appended if it is new, as the value says; NULL: memory is short. */
#define table_obtain(table, key, item, is_same, ...)                                               \
	({                                                                                         \
		__auto_type obtained_table_ = (table);                                             \
		uint64_t obtained_key_ = (key);                                                    \
		__auto_type obtained_ = table_find(obtained_table_, obtained_key_, item, is_same); \
                                                                                                   \
		if (!obtained_) {                                                                  \
			struct error *obtained_error_ =                                            \
				table_append(obtained_table_, obtained_key_, __VA_ARGS__);         \
                                                                                                   \
			if (obtained_error_)                                                       \
				error_destroy(obtained_error_);                                    \
			else                                                                       \
				obtained_ = &obtained_table_->items[obtained_table_->count - 1];   \
		}                                                                                  \
		obtained_;                                                                         \
	})

/* The count-th item was added: let its slot say so. */
struct error *table_slots_add(struct table_slots *slots, struct memory_account *account,
			      uint64_t key, size_t count);

/* Release its memory; the table is empty then, and may grow again. */
#define table_release(table) cleanup_table_release(table)
#define tables_release(...)                          \
	do {                                         \
		FOR_EACH(TABLE_RELEASE, __VA_ARGS__) \
	} while (0)
#define TABLE_RELEASE(table) table_release(table);

static inline void cleanup_table_release(void *table)
{
	HASH_TABLE(void) *released = table;

	memory_release(&released->memory);
	memory_release(&released->slots.memory);
	released->count = 0;
}
