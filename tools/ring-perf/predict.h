/* What the model says of sizes and rings, without a ring. */
#ifndef PREDICT_H
#define PREDICT_H

#include "report.h"

/* Prints the rows' sizes for the ranks of the options, else for rings of 2, 4, 8, ... ranks. */
void print_prediction(const options_t *options, const row_t *rows, size_t row_count);

/* Prints the model that fits what was measured, where it can be told. */
void print_fit(const options_t *options, int size, const row_t *rows, size_t row_count);

#endif
