/*
 * Checks who asks: only a browser that knows the token, on a page of this server, may.
 *
 * A page of another site cannot know the token, nor read answers; it can make a browser send a
 * request, under a name that leads here (DNS rebinding) or from elsewhere. So each request must
 * name this server as its host, and come from no other page.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TOKEN_SIZE = 33, COOKIE_NAME_SIZE = 32 };

struct guard {
	char token[TOKEN_SIZE]; /* of the address that is printed, and of the cookie */
	char once[TOKEN_SIZE];	/* works for one request, as others can see a browser's arguments */
	bool once_used;
	char cookie[COOKIE_NAME_SIZE]; /* its name; browsers send it to all ports */

	const char *address; /* listened at, as text; "": any; NULL: a socket of a path */
	uint16_t port;
};

/* Make the tokens; false if the machine has no random numbers. */
bool guard_init(struct guard *guard, const char *address, uint16_t port);

/* Either token; NULL is none. */
bool guard_takes_token(struct guard *guard, const char *token);
bool guard_takes_cookie(const struct guard *guard, const char *value);

/* The headers of those names; NULL: there is none. */
bool guard_takes_host(const struct guard *guard, const char *host);
bool guard_takes_origin(const char *host, const char *origin, const char *fetch_site);
