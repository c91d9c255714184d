/* What rank 0 prints. */
#ifndef REPORT_H
#define REPORT_H

#include "measure.h"
#include "member.h"
#include "options.h"

typedef struct row {
  size_t total;      /* elements of the size */
  size_t count;      /* the call's argument; of parts that vary all together */
  result_t out_of_place;
  result_t in_place;
} row_t;

void print_header(const options_t *options, const member_t *members, int size);
void print_row(const options_t *options, const row_t *row);
void print_footer(const row_t *rows, size_t row_count);
void print_json(const options_t *options, const member_t *members, int size, const row_t *rows, size_t row_count);

/* Wrong elements of all rows together. */
uint64_t wrong_in(const row_t *rows, size_t row_count);

#endif
