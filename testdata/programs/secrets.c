/*
 * Plants the secrets of a file in all kinds of places, one secret a line in hexadecimal: in blocks
 * that are used and freed, small and large, in variables, on stacks, in mappings. Those of its
 * arguments and environment are there anyway. Writes "ready", and waits.
 *
 * A secret stands behind 8 bytes of a struct, as a field would. Where GLib is preloaded, it is in
 * slices, too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 2048, LONGEST = 64, GAP = 7 };

struct secret {
	size_t size;
	uint8_t bytes[LONGEST];
};

static struct secret *secrets; /* in a mapping */
static size_t count;

/* A block that stays. */
struct record {
	struct record *next;
	uint64_t kind; /* a number, as secret as the rest */
	uint8_t bytes[];
};

static struct record *records;
static uint8_t planted[MOST * LONGEST];
static __thread uint8_t of_thread[MOST * LONGEST / 4];
static uint8_t *mapping;
static void *kept[MOST];
static pthread_barrier_t barrier; /* all have planted */

static void read_secrets(const char *path)
{
	static char line[2 * LONGEST + 2];
	FILE *file = fopen(path, "r");

	setvbuf(file, NULL, _IONBF, 0);
	while (count < MOST && fgets(line, sizeof(line), file)) {
		struct secret *secret = &secrets[count++];

		for (size_t i = 0; line[2 * i] && line[2 * i] != '\n'; i++) {
			unsigned int byte;

			sscanf(line + 2 * i, "%2x", &byte);
			secret->bytes[secret->size++] = (uint8_t)byte;
		}
	}
	fclose(file);
	memset(line, 0, sizeof(line));
}

static void plant_blocks(void)
{
	for (size_t i = 0; i < count; i++) {
		size_t spare = i % 5 == 0 ? 3000 : i % 32;
		struct record *record = calloc(1, sizeof(*record) + secrets[i].size + spare);
		void *freed = malloc(sizeof(*record) + secrets[i].size + spare);
		uint8_t *large;

		record->next = records;
		memcpy(&record->kind, secrets[i].bytes, sizeof(record->kind));
		memcpy(record->bytes, secrets[i].bytes, secrets[i].size);
		records = record;
		kept[i] = i % 3 ? (uint8_t *)record + 16 : NULL;
		memcpy((uint8_t *)freed + 8, secrets[i].bytes, secrets[i].size);
		memcpy((uint8_t *)freed + 16, secrets[i].bytes, secrets[i].size);
		free(freed);
		if (i % 50)
			continue;
		large = malloc(300000);
		memcpy(large + 200000 + i, secrets[i].bytes, secrets[i].size);
		if (i % 100)
			free(large);
		else
			kept[i] = large;
	}
}

/* In slices of GLib that are kept, or freed again. */
static void plant_slices(void *(*slice_alloc)(size_t size), void (*slice_free)(size_t, void *))
{
	static uint8_t *slices[MOST];

	for (size_t i = 0; i < count; i++) {
		size_t size = secrets[i].size + 16 + i % 32;

		slices[i] = slice_alloc(size);
		memset(slices[i], 0, size);
		memcpy(slices[i] + i % 3 * 8, secrets[i].bytes, secrets[i].size);
	}
	for (size_t i = 0; i < count; i += 4)
		slice_free(secrets[i].size + 16 + i % 32, slices[i]);
}

static void plant_rows(uint8_t *place, size_t room, size_t step)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i += step) {
		size_t size = (secrets[i].size + GAP) & ~(size_t)GAP;

		if (used + size + 8 > room)
			break;
		memcpy(place + used, secrets[i].bytes, secrets[i].size);
		used += size + 8;
	}
}

static void *run(void *data)
{
	volatile uint8_t local[MOST * LONGEST / 4];

	memset((uint8_t *)local, 0, sizeof(local));
	plant_rows((uint8_t *)local, sizeof(local), 4);
	plant_rows(of_thread, sizeof(of_thread), 4);
	pthread_barrier_wait(&barrier);
	if (data) {
		puts("ready");
		fflush(stdout);
	}
	for (;;)
		pause();
	return (void *)(uintptr_t)local[0];
}

int main(int argument_count, char **arguments)
{
	pthread_t thread;

	secrets = mmap(NULL, MOST * sizeof(*secrets), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	read_secrets(arguments[1]);
	plant_blocks();
	if (dlsym(RTLD_DEFAULT, "g_slice_alloc"))
		plant_slices((void *(*)(size_t))dlsym(RTLD_DEFAULT, "g_slice_alloc"),
			     (void (*)(size_t, void *))dlsym(RTLD_DEFAULT, "g_slice_free1"));
	plant_rows(planted, sizeof(planted), 1);
	mapping = mmap(NULL, MOST * LONGEST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	plant_rows(mapping, MOST * LONGEST, 1);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, run, NULL);
	run(arguments);
	return argument_count;
}
