/*
 * In place of GnuTLS in a static heapcore, for Debian has no static p11-kit, which GnuTLS needs.
 *
 * libmicrohttpd refers to these functions, and calls all but the first two only for connections
 * with TLS, which heapcore does not ask for.
 */
#include <stdlib.h>

/* The prototypes are GnuTLS's; here only the names count. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

int gnutls_global_init(void)
{
	return 0;
}

void gnutls_global_deinit(void)
{
}

#define NEVER_CALLED(name) \
	void name(void);   \
	void name(void)    \
	{                  \
		abort();   \
	}

NEVER_CALLED(gnutls_alpn_set_protocols)
NEVER_CALLED(gnutls_bye)
NEVER_CALLED(gnutls_certificate_allocate_credentials)
NEVER_CALLED(gnutls_certificate_free_credentials)
NEVER_CALLED(gnutls_certificate_server_set_request)
NEVER_CALLED(gnutls_certificate_set_dh_params)
NEVER_CALLED(gnutls_certificate_set_retrieve_function2)
NEVER_CALLED(gnutls_certificate_set_retrieve_function3)
NEVER_CALLED(gnutls_certificate_set_x509_key_mem)
NEVER_CALLED(gnutls_certificate_set_x509_key_mem2)
NEVER_CALLED(gnutls_certificate_set_x509_trust_mem)
NEVER_CALLED(gnutls_cipher_get)
NEVER_CALLED(gnutls_credentials_set)
NEVER_CALLED(gnutls_deinit)
NEVER_CALLED(gnutls_dh_params_deinit)
NEVER_CALLED(gnutls_dh_params_import_pkcs3)
NEVER_CALLED(gnutls_dh_params_init)
NEVER_CALLED(gnutls_handshake)
NEVER_CALLED(gnutls_init)
NEVER_CALLED(gnutls_priority_deinit)
NEVER_CALLED(gnutls_priority_init)
NEVER_CALLED(gnutls_priority_init2)
NEVER_CALLED(gnutls_priority_set)
NEVER_CALLED(gnutls_protocol_get_version)
NEVER_CALLED(gnutls_psk_allocate_server_credentials)
NEVER_CALLED(gnutls_psk_free_server_credentials)
NEVER_CALLED(gnutls_psk_set_server_credentials_function)
NEVER_CALLED(gnutls_record_check_pending)
NEVER_CALLED(gnutls_record_cork)
NEVER_CALLED(gnutls_record_uncork)
NEVER_CALLED(gnutls_record_get_direction)
NEVER_CALLED(gnutls_record_recv)
NEVER_CALLED(gnutls_record_send)
NEVER_CALLED(gnutls_session_get_ptr)
NEVER_CALLED(gnutls_session_set_ptr)
NEVER_CALLED(gnutls_strerror)
NEVER_CALLED(gnutls_transport_set_int2)
NEVER_CALLED(gnutls_transport_set_ptr)
NEVER_CALLED(gnutls_transport_set_pull_function)
NEVER_CALLED(gnutls_transport_set_push_function)
NEVER_CALLED(gnutls_malloc)
