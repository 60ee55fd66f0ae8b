/*
 * Dumps that cannot be mapped as they are: packed ones, and those that come through a pipe. They
 * are written to a file without a name, zeros as holes, and that is mapped.
 *
 * What comes out is bounded by what the dump's own headers tell of, and by the room of the file
 * system, of which some is left to others. What is packed once more is not unpacked. Where the file
 * is damaged or cut off, what came out is kept, and there is a finding.
 */
#pragma once

#include "analyzer/base/error.h"
#include "analyzer/image/image.h"

/* True if fd is a pipe that somebody holds, or a socket, but no FIFO of a folder. */
bool unpack_is_stream(int fd);

/*
 * Unpack what is in from, if it is packed or a stream. *ret is the file to be mapped, or -1 if from
 * itself can be.
 */
struct error *unpack(int from, const struct image_options *options, struct findings *findings,
		     int *ret);
