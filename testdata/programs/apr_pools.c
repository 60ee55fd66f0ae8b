/*
 * Pools of APR, whose headers are not needed. For each part that the program has a line "ADDRESS
 * TAG", then "ready". Parts of pools that were destroyed have the tag "freed".
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct apr_pool_t apr_pool_t;
int apr_initialize(void);
int apr_pool_create_ex(apr_pool_t **pool, apr_pool_t *parent, void *abort, void *allocator);
void apr_pool_destroy(apr_pool_t *pool);
void apr_pool_tag(apr_pool_t *pool, const char *tag);
void *apr_palloc(apr_pool_t *pool, size_t size);

enum { SESSIONS = 40, FREED = 10, PARTS = 60 };

static apr_pool_t *make_pool(apr_pool_t *parent, const char *tag)
{
	apr_pool_t *pool;

	if (apr_pool_create_ex(&pool, parent, NULL, NULL) != 0)
		return NULL;
	if (tag)
		apr_pool_tag(pool, tag);
	return pool;
}

/* Take parts from the pool, one of them large. */
static void fill(apr_pool_t *pool, int count, const char *said)
{
	for (int i = 0; i < count; i++) {
		void *part = apr_palloc(pool, i == 5 ? 50000 : 400);

		memset(part, 'x', 400);
		printf("%p %s\n", part, said);
	}
}

int main(void)
{
	apr_pool_t *orders, *freed[FREED];

	apr_initialize();
	orders = make_pool(NULL, "orders");
	fill(orders, 4, "apr pool orders");
	for (int i = 0; i < FREED; i++) {
		freed[i] = make_pool(NULL, "session");
		fill(freed[i], i, "freed");
	}
	for (int i = 0; i < SESSIONS; i++) {
		apr_pool_t *session = make_pool(orders, "session");

		fill(session, i, "apr pool session");
		fill(make_pool(session, NULL), i / 4, "apr pools below session");
	}
	for (int i = 0; i < FREED; i++)
		apr_pool_destroy(freed[i]);
	puts("ready");
	fflush(stdout);
	pause();
}
