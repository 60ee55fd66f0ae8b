/*
 * What OpenSSL's objects have in common.
 */
#ifndef ANALYZER_CLASSIFY_OPENSSL_H
#define ANALYZER_CLASSIFY_OPENSSL_H

#include "analyzer/classify/reader.h"

/*
 * Whether an SSL_METHOD is at address: in a module, of the protocol versions that there are, with
 * functions of the same module one after the other.
 */
bool is_ssl_method(struct reader *reader, uint64_t address);

/* SSL3_VERSION to TLS1_3_VERSION, any version, and those of DTLS. */
bool is_ssl_version(uint64_t version);

#endif
