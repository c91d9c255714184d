#ifndef MEMORY_H
#define MEMORY_H

/* Rings whose links are shared memory. */
void measure_memory_rings(void);

/* Copies and additions of one process. */
void measure_memory(void);

#endif
