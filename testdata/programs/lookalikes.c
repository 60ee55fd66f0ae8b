/*
 * Allocations that look like values of types that they are not of: for each a line "ADDRESS TYPE",
 * with "?" where nothing in the program says it.
 */
#include "truth.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* All items begin with this header, and two types of these. */
struct item {
	struct item *next;
	unsigned char kind;
};

struct crate {
	struct item header;
	struct item *inside;
	long weight[2];
};

struct word {
	struct item header;
	struct item *meaning;
	char text[];
};

/* As long as it needs to be. */
struct vine {
	struct vine *next;
	long length;
	struct grape *grapes[];
};

struct grape {
	struct vine *vine;
	long weights[4];
};

/*
 * All cells begin with this header, and two types of these. A collector that never ran would write
 * "gray".
 */
struct cell {
	struct cell *next;
	unsigned char kind;
};

struct fork {
	struct cell header;
	struct cell *left;
	struct grape *fruit;
	struct cell *gray;
};

struct knot {
	struct cell header;
	struct cell *gray;
	struct cell *ends[1];
};

struct player {
	struct player *next;
	long number;
};

/* Nothing says whether there are two players or many. */
struct team {
	long count;
	union {
		struct player **many;
		struct {
			struct player *first, *second;
		} * two;
	};
};

/* The type of an entry's value is known only to its user. */
struct entry {
	struct entry *next;
	void *value;
};

struct callback {
	void *function;
	struct callback *after;
};

struct reply {
	long size, used;
	char text[];
};

struct label {
	char *text;
	long width;
};

struct fact {
	struct label *label;
	long number, year;
};

struct job {
	char *name;
	long start, end;
};

struct holder {
	long number;
	void *thing;
};

/* Nothing says what is in a sack. */
struct sack {
	struct sack *next;
	void **things;
	long count;
};

/* A number, or something of the user's. */
struct ticket {
	long kind;
	union {
		void *thing;
		unsigned long number;
	};
};

struct item *items; /* nobody reads these: compilers would do without */
struct cell *forks, *knots, *unmarked, *bare;
struct grape no_fruit;
struct holder holder;
static struct vine *vines;
static struct player *players;
struct team teams[40];
static struct sack *sacks;
struct ticket tickets[20];
char *motto;
static struct entry *callbacks, *replies, *facts;
static struct holder busy;

long seen;

static void *make(size_t size, const char *type)
{
	void *block = calloc(1, size);

	printf("%p %s\n", block, type);
	return block;
}

static struct entry *push(struct entry *list, void *value)
{
	struct entry *entry = make(sizeof(*entry), "struct entry");

	entry->next = list;
	entry->value = value;
	return entry;
}

/* Not static, so that no compiler changes what they take. */
OUT_OF_LINE void use_item(const struct item *item);
OUT_OF_LINE void use_callback(const struct callback *callback);
OUT_OF_LINE void use_reply(const struct reply *reply);
OUT_OF_LINE void use_fact(const struct fact *fact);
OUT_OF_LINE void use_job(const struct job *job);
OUT_OF_LINE void *next_thing(const struct holder *from);

void use_item(const struct item *item)
{
	seen += item->kind == 1 ? ((const struct crate *)item)->weight[0]
				: ((const struct word *)item)->text[0];
}

void use_callback(const struct callback *callback)
{
	seen += callback->after != NULL;
}

void use_reply(const struct reply *reply)
{
	seen += reply->used;
}

void use_fact(const struct fact *fact)
{
	seen += fact->number;
}

void use_job(const struct job *job)
{
	seen += job->start;
}

void *next_thing(const struct holder *from)
{
	return from->thing;
}

OUT_OF_LINE static void use_all(void)
{
	for (const struct entry *entry = callbacks; entry; entry = entry->next)
		use_callback(entry->value);
	for (const struct entry *entry = replies; entry; entry = entry->next)
		use_reply(entry->value);
	for (const struct entry *entry = facts; entry; entry = entry->next)
		use_fact(entry->value);
	if (busy.number)
		use_item(items);
	if (busy.number)
		use_job(next_thing(&busy));
}

/* One of a kind, of which only the header is known: malloc may give so much for a header, too. */
OUT_OF_LINE static void fill_items(void)
{
	static const char name[] = "neither";
	struct item *small = make(40, "block, beginning with struct item");
	struct item *large = make(60, "block, beginning with struct item");
	void *unknown = make(100, "?");

	small->kind = 5;
	memcpy(small + 1, name, sizeof(name));
	large->kind = 9;
	memcpy(large + 1, &unknown, sizeof(unknown));
	small->next = large;
	items = small;
}

/* The last word is what malloc gave more, and has an old pointer. */
OUT_OF_LINE static void fill_vines(void)
{
	for (int i = 0; i < 20; i++) {
		size_t count = 2 + (size_t)i % 2;
		struct vine *vine =
			make(sizeof(*vine) + count * sizeof(vine->grapes[0]), "struct vine");
		struct grape **grapes = vine->grapes;

		vine->next = vines;
		vine->length = i;
		for (size_t j = 0; j < count; j++) {
			grapes[j] = make(sizeof(*grapes[j]), "struct grape");
			grapes[j]->vine = vine;
		}
		if (count == 2) {
			void *reused = make(56, "?");

			memcpy((char *)vine + 32, &reused, sizeof(reused));
		}
		vines = vine;
	}
}

static struct fork *new_fork(struct cell **list, const char *type)
{
	struct fork *fork = make(sizeof(*fork), type);

	fork->header.kind = 1;
	fork->header.next = *list;
	*list = &fork->header;
	return fork;
}

/* The last forks look like knots, but for their kind, and some not like forks. */
OUT_OF_LINE static void fill_cells(void)
{
	for (int i = 0; i < 300; i++) {
		struct fork *fork = new_fork(&forks, "struct fork");

		fork->left = fork->gray = fork->header.next;
		fork->fruit = make(sizeof(*fork->fruit), "struct grape");
	}
	for (int i = 0; i < 40; i++) {
		struct knot *knot = make(sizeof(*knot) + 2 * sizeof(knot->ends[0]), "struct knot");

		knot->header.kind = 2;
		knot->header.next = knots;
		for (size_t j = 0; j < 3; j++)
			knot->ends[j] = forks;
		knots = &knot->header;
	}
	for (int i = 0; i < 20; i++) {
		bool is_reused = i % 5 < 2;
		struct fork *fork = new_fork(
			&unmarked, is_reused ? "block, beginning with struct cell" : "struct fork");

		fork->left = forks;
		if (is_reused)
			memset(&fork->gray, 'D', 2);
	}
}

/* Only what no_fruit is tells them from knots. */
OUT_OF_LINE static void fill_bare(void)
{
	for (int i = 0; i < 20; i++) {
		struct fork *fork = new_fork(&bare, "block, beginning with struct cell");

		fork->header.kind = 3;
		fork->left = forks;
		fork->fruit = &no_fruit;
		if (i % 5 < 2)
			memset(&fork->gray, 'D', 2);
	}
}

OUT_OF_LINE static void fill_teams(void)
{
	for (int i = 0; i < 40; i++) {
		struct player *player = make(sizeof(*player), "struct player");

		player->next = players;
		player->number = i;
		players = player;
		teams[i].count = 2;
		teams[i].many = make(2 * sizeof(struct player *), "?");
		teams[i].many[0] = teams[i].many[1] = player;
	}
}

/* Players and fruit in turn; or nothing. */
OUT_OF_LINE static void fill_sacks(void)
{
	for (int i = 0; i < 20; i++) {
		struct sack *sack = make(sizeof(*sack), "struct sack");

		sack->next = sacks;
		sack->things = make(30 * sizeof(void *), "?");
		sack->count = i % 2 ? 30 : 0;
		for (long j = 0; j < sack->count; j++)
			sack->things[j] = j % 2 ? (void *)players : vines->grapes[0];
		sacks = sack;
	}
}

/* The numbers lead to words behind which other things are. */
OUT_OF_LINE static void fill_tickets(void)
{
	motto = strcpy(make(40, "char[]"), "this alone is text");
	for (int i = 0; i < 20; i++) {
		char *block = make(100, "not text");

		memcpy(block, "\001\002\377\376and so on", 14);
		memcpy(block + 64, &players, sizeof(players));
		tickets[i].kind = i;
		tickets[i].thing = block + 4;
	}
}

/* A block whose address looks like six letters, as bytes. */
static void *make_lettered(void)
{
	for (;;) {
		void *block = make(300, "?");
		unsigned char bytes[sizeof(block)];
		size_t letters = 0;

		memcpy(bytes, &block, sizeof(block));
		while (letters < 6 && bytes[letters] >= ' ' && bytes[letters] != 0x7f)
			letters++;
		if (letters == 6)
			return block;
	}
}

OUT_OF_LINE static void fill_entries(void)
{
	for (int i = 0; i < 25; i++) {
		void **player = make(24, "?"), **client = make(744, "?");

		*player = players;
		callbacks = push(callbacks, player);
		client[2] = make_lettered();
		replies = push(replies, client);
		facts = push(facts, make(100, "?"));
	}
}

/* A single one has little evidence for its type. */
OUT_OF_LINE static void fill_single(void)
{
	void **like_fact = make(24, "?"), **like_job = make(24, "?");

	like_fact[0] = make(16, "?");
	facts = push(facts, like_fact);
	like_job[0] = strcpy(make(40, "?"), "somebody");
	holder.thing = like_job;
}

/* The public part of a shelf, which malloc rounds to the same size. */
struct shelf {
	int rooms, used;
	long *spare;
	void (*open)(void), (*close)(void), (*clean)(void), (*paint)(void);
};

struct own_shelf {
	struct shelf seen;
	long *scan;
};

struct stand {
	int kind;
	union {
		char *text;
		struct shelf *shelf;
		long number;
	} of;
} stand;

static void do_nothing(void)
{
}

/* Free pieces of blocks, of which the list says nothing else. */
union spare {
	char room[32];
	union spare *next;
};

static union spare *volatile spares;

OUT_OF_LINE static void fill_spares(void)
{
	for (int i = 0; i < 3; i++) {
		union spare *pieces = make(8 * sizeof(*pieces) + 8, "?");

		for (int j = 1; j < 8; j++) {
			pieces[j].next = spares;
			spares = &pieces[j];
		}
	}
}

OUT_OF_LINE static void fill_stand(void)
{
	struct own_shelf *own = make(sizeof(*own), "struct shelf");

	own->seen.rooms = own->seen.used = 3;
	own->seen.open = own->seen.close = own->seen.clean = own->seen.paint = do_nothing;
	stand.kind = 1;
	stand.of.shelf = &own->seen;
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	fill_items();
	fill_vines();
	fill_cells();
	fill_bare();
	fill_teams();
	fill_sacks();
	fill_tickets();
	fill_entries();
	fill_single();
	fill_stand();
	fill_spares();
	use_all();
	puts("ready");
	for (;;)
		pause();
}
