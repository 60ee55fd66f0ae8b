/*
 * The socket that the server listens at: of this machine only, unless the user asks for more.
 */
#pragma once

#include "analyzer/base/error.h"

#include <stdint.h>

enum { ADDRESS_SIZE = 128 };

struct listener {
	int socket;		    /* -1: none */
	char address[ADDRESS_SIZE]; /* as text; "": any; of a path: unused */
	uint16_t port;		    /* 0: a path */
	const char *path;	    /* of a socket in the file system; borrowed; or NULL */
	bool is_public;		    /* others than this machine can reach it */
};

/* where is "unix:PATH", "ADDRESS:PORT", or NULL: 127.0.0.1; port 0: any that is free. */
struct error *listener_open(const char *where, uint16_t port, struct listener *ret);

/* Remove the socket's path. The socket itself is the server's. */
void listener_remove(const struct listener *listener);
