/* Where ranks on this host can meet. */
#ifndef LOCAL_HOSTS_H
#define LOCAL_HOSTS_H

/* A hostfile's text for a ring on 127.0.0.1, on ports that nobody listens on and that stay taken
 * for its ranks until this process ends; NULL when there are none. The caller frees it. */
char *local_hosts(int ranks);

#endif
