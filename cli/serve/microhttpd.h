/*
 * libmicrohttpd, loaded when a server begins: it brings libraries along that take 10 ms to start,
 * and every other command does without.
 */
#pragma once

#include "analyzer/base/error.h"

#include <microhttpd.h>

#define MICROHTTPD_FUNCTIONS(DO)        \
	DO(add_response_header)         \
	DO(create_response_from_buffer) \
	DO(destroy_response)            \
	DO(get_connection_info)         \
	DO(lookup_connection_value)     \
	DO(queue_response)              \
	DO(start_daemon)                \
	DO(stop_daemon)

/* It stays loaded: its libraries have threads' data of their own. */
struct microhttpd {
#define DECLARE_FUNCTION(name) typeof(&MHD_##name) name;
	MICROHTTPD_FUNCTIONS(DECLARE_FUNCTION)
#undef DECLARE_FUNCTION
};

struct error *microhttpd_load(struct microhttpd *ret);
