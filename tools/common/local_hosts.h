/* Where ranks on this host can meet. */
#ifndef LOCAL_HOSTS_H
#define LOCAL_HOSTS_H

/* A hostfile's text for a ring on 127.0.0.1, on ports that nobody listens on; NULL when there are
 * none. The caller frees it. */
char *local_hosts(int ranks);

#endif
